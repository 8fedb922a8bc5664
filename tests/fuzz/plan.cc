// Any bytes are a plan or a ConfigError; what was read reads the same when written.
#include "parsimony/speedup/plan.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "parsimony/base/errors.h"
#include "tests/fuzz/support/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const parsimony::fuzz::MemoryLimit limit(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const parsimony::Plan plan = parsimony::Plan::from_json(text, "plan.json");
    if (parsimony::Plan::from_json(plan.to_json(), "again.json") != plan) std::abort();
  } catch (const parsimony::ConfigError&) {
    return 0;
  }
  return 0;
}
