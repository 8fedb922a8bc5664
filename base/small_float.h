// Floating point of 8 bits or fewer, by tables.
// @source ONNX, "Float stored in 8 bits", "Float stored in 4 bits"
#pragma once

#include <array>
#include <cstdint>

#include "parsimony/base/types.h"

namespace parsimony {

/// The number that each byte stands for; of a type of 4 bits only the low ones count.
/// @pre is_small_float(type)
const std::array<float, 256>& small_floats(DType type);

/// The byte of the nearest number, of the even one half way between two; beyond the largest that of
/// the largest. @pre is_small_float(type)
uint8_t nearest_small_float(DType type, double value);

}  // namespace parsimony
