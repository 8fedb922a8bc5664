// Comparisons of a weight's elements with those of a checkpoint.
#pragma once

#include <optional>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony::checkpoints {

using Numbers = std::vector<double>;

Numbers numbers_of(const Weight& weight);

bool all_equal(const Numbers& values);

/// Are the elements of `a`, a matrix of `dims`, those of `b` with rows and columns exchanged?
bool equal_transposed(const Numbers& a, const Numbers& b, const Shape& dims);

/// The factor of each index of axis `out` between two tensors of `dims`; empty if there is none.
Numbers factors_between(const Numbers& folded, const Numbers& plain, const Shape& dims, int out);

/// The ε in use for which the factor of every channel is gain / √(variance + ε); empty if there is
/// none.
std::optional<double> epsilon_of(const Numbers& factors, const Numbers& gain,
                                 const Numbers& variance);

}  // namespace parsimony::checkpoints
