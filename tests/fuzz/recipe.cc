// Any text is a training recipe or a ConfigError.
#include "parsimony/configs/recipe.h"

#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"
#include "tests/fuzz/support/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const parsimony::fuzz::MemoryLimit limit(size);
  try {
    parsimony::parse_recipe({reinterpret_cast<const char*>(data), size}, "recipe.json");
  } catch (const parsimony::ConfigError&) {
    return 0;
  }
  return 0;
}
