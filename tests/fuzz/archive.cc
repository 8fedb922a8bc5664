// Any bytes have a list of entries, or a reason for being no TorchScript: what stands between a
// file and libtorch's own reader.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "parsimony/torch_io/script/archive_impl.h"
#include "tests/fuzz/support/memory.h"

namespace script = parsimony::torch_io::script;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const parsimony::fuzz::MemoryLimit limit(size);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto entries = script::entries_of(bytes);
  if (script::not_torchscript_because(bytes).empty() && entries.empty()) std::abort();
  if (script::extra_files(bytes).size() > entries.size()) std::abort();
  return 0;
}
