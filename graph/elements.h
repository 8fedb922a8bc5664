// Elements of tensors, of any type, as bytes and as numbers. A network with a NaN
// in a weight computes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// The elements of a weight side by side, as they are.
std::vector<std::byte> dense_bytes(const Weight& weight);

/// Is an element of so many bytes zero? -0.0 is.
inline bool is_zero(const std::byte* element, int64_t bytes, bool floating) {
  for (int64_t b = 0; b + 1 < bytes; ++b) {
    if (element[b] != std::byte{0}) return false;
  }
  const std::byte top = bytes > 0 ? element[bytes - 1] : std::byte{1};
  return (floating ? top & std::byte{0x7f} : top) == std::byte{0};
}

/// Reads an element, which need not be aligned.
using ReadNumber = double (*)(const std::byte* element);

/// Null for types that are not numbers.
ReadNumber reader_of(DType type);

/// Writes an element of a floating-point type, rounded to nearest, ties to even.
void write_number(double value, DType type, std::byte* element);

/// The value that an element of a floating-point type holds of `value`; integers are not rounded.
double rounded(DType type, double value);

/// Index of the first NaN; empty if there is none, or if the type has none. Infinities are allowed:
/// attention masks use them.
std::optional<int64_t> find_nan(const Weight& weight);

/// Reads every floating-point weight once, at memory speed.
/// @throws ModelError naming the first weight with a NaN
void check_weights(const Graph& graph);

}  // namespace parsimony
