// Comparisons of a weight's elements with those of a checkpoint.
#pragma once

#include <optional>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/graph/graph.h"

namespace parsimony::checkpoints {

using Numbers = std::vector<double>;

Numbers numbers_of(const Weight& weight);

/// A stored tensor as a weight, for as long as its values are held.
Weight as_weight(const StoredTensor& tensor, const StoredValues& values);

bool all_equal(const Numbers& values);

/// Are the numbers of two weights of one shape the same?
bool equal_numbers(const Weight& a, const Weight& b);

/// As elements of `dtype`; floats are rounded to nearest.
std::vector<std::byte> bytes_of(const Numbers& numbers, DType dtype);

/// A matrix of `dims` with rows and columns exchanged.
Numbers transposed(const Numbers& numbers, const Shape& dims);

/// Are the elements of `a`, a matrix, those of `b` with rows and columns exchanged?
bool equal_transposed(const Weight& a, const Weight& b);

/// The factor of each index of axis `out` between two weights of one shape; empty if there is none.
Numbers factors_between(const Weight& folded, const Weight& plain, int out);

/// The ε in use for which the factor of every channel is gain / √(variance + ε); empty if there is
/// none.
std::optional<double> epsilon_of(const Numbers& factors, const Numbers& gain,
                                 const Numbers& variance);

}  // namespace parsimony::checkpoints
