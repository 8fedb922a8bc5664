// Numbers as the bytes of a tensor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony::elements {

/// The elements of a weight side by side, as they are.
std::vector<std::byte> bytes_of(const Weight& weight);

/// Writes element `index` of a tensor of a floating-point type, rounded to nearest.
void put(double value, DType type, int64_t index, std::span<std::byte> bytes);

}  // namespace parsimony::elements
