// Shapes that a file declares, in which -1 is any size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace parsimony {

inline bool fits_declared(std::span<const int64_t> sizes, std::span<const int64_t> declared) {
  return std::ranges::equal(
      sizes, declared, [](int64_t size, int64_t wanted) { return wanted < 0 || size == wanted; });
}

}  // namespace parsimony
