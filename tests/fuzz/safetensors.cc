// Any bytes are masks or an Error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/masks/mask.h"
#include "tests/fuzz/support/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const parsimony::fuzz::MemoryLimit limit(size);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& mask : parsimony::parse_masks(bytes, "masks.safetensors")) {
      const size_t elements = parsimony::element_count(mask.dims);
      if (mask.keep.size() != elements) std::abort();
    }
  } catch (const parsimony::Error&) {
    return 0;
  }
  return 0;
}
