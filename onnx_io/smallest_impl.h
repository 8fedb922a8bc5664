// The n elements of smallest magnitude of a tensor, found without copying it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>

#include "parsimony/base/types.h"

namespace parsimony::onnx_io {

/// The elements whose (magnitude, index) is at most this pair. `magnitude` is ordered like |x|; its
/// value has no other meaning. Slicing preserves the order of indices, so the union of two such
/// sets is the larger one.
struct SmallestElements {
  uint64_t magnitude = 0;
  int64_t index = -1;

  bool contains(uint64_t of, int64_t at) const {
    return of < magnitude || (of == magnitude && at <= index);
  }
  bool operator<(const SmallestElements& other) const {
    return std::tie(magnitude, index) < std::tie(other.magnitude, other.index);
  }
};

/// Grows with the absolute value; NaN is larger than every number.
uint64_t magnitude_of(DType dtype, const std::byte* element);

/// Calls `run(first, count, index)` for runs of neighbouring elements in ascending order; `index`
/// is that of `first`.
using ElementRun = std::function<void(const std::byte* first, int64_t count, int64_t index)>;
using ForEachElementRun = std::function<void(const ElementRun& run)>;

/// `count` is from 1 to the number of elements. What is in `zeros` already counts as zero.
SmallestElements smallest(DType dtype, int64_t stride, int64_t count,
                          const std::optional<SmallestElements>& zeros,
                          const ForEachElementRun& for_each);

/// Sets the elements of a run to zero that are in `chosen`. `index` is that of the first.
void set_zero(std::byte* first, int64_t count, int64_t index, DType dtype, int64_t stride,
              const SmallestElements& chosen);

}  // namespace parsimony::onnx_io
