// Any bytes are a ledger or an Error; a point that was read reads the same when written.
#include "parsimony/report/ledger.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "tests/fuzz/support/memory.h"
#include "tests/fuzz/support/scratch.h"

using namespace parsimony;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Scratch folder;
  folder.write("ledger.jsonl", {reinterpret_cast<const char*>(data), size});
  const fuzz::MemoryLimit limit(size);
  try {
    for (const LedgerPoint& point : read_ledger(folder / "ledger.jsonl").points) {
      const std::string line = to_json_line(point);
      if (to_json_line(read_ledger_point(line, "again")) != line) std::abort();
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
