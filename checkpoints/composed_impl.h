// Comparisons of a weight's elements with those of a checkpoint, and weights that are computed from
// several tensors: normalised, or masked.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/dependents.h"
#include "parsimony/checkpoints/match.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/slice.h"

namespace parsimony::checkpoints {

using Numbers = std::vector<double>;

Numbers numbers_of(const Weight& weight);

/// A stored tensor as a weight, for as long as its values are held.
Weight as_weight(const StoredTensor& tensor, const StoredValues& values);

bool all_equal(const Numbers& values);

/// Are the numbers of two weights of one shape the same?
bool equal_numbers(const Weight& a, const Weight& b);

/// Converts the numbers to elements of `dtype`; floats are rounded to nearest.
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

/// The tensors of a weight that is g·v/|v|, or w/σ with σ = uᵀ·w·v, or w·mask.
struct Composition {
  TensorId weight;  ///< v of weight norm, w of the others
  TensorId magnitude = {};
  TensorId left = {};
  TensorId right = {};
  TensorId mask = {};
  int rows = 0;  ///< of spectral normalisation: the weight's axis along which `left` runs

  bool is_spectral() const { return left != TensorId() && right != TensorId(); }
  bool is_plain() const { return magnitude == TensorId() && mask == TensorId() && !is_spectral(); }
};

/// Finds how the weight of which `tensor` is the main part is composed. Tensors whose shapes do not
/// fit are no part of it.
/// @param outputs  the tensor's axis of outputs, as far as known
Composition composition_of(TensorId tensor, const Dependents& dependents,
                           const Checkpoint& checkpoint, int outputs = 0);

/// Finds how a weight in the copy under `prefix` is composed, from the dependents that the match
/// names. If a network reads the parts itself, they are its own weights, none of which is composed.
Composition composition_of(const WeightMatch& match, const std::string& prefix,
                           const TensorNames& names, const Dependents& dependents,
                           const Checkpoint& checkpoint);

/// Does a magnitude of this shape have the weight's axes, each whole or 1, or one element?
bool is_magnitude(const Shape& magnitude, const Shape& weight);

/// The axis of a weight that is the rows of the matrix whose norm spectral normalisation divides
/// by; all others, in order, are its columns. `preferred` if several fit.
std::optional<int> rows_of(const Shape& dims, int64_t left, int64_t right, int preferred);

/// The elements of the weight.
Numbers composed(const Composition& composition, const Checkpoint& checkpoint);

/// The elements of a stored tensor.
Numbers stored_numbers(const Checkpoint& checkpoint, TensorId tensor);

/// Are the elements those of the weight, but for the rounding of the computation?
bool nearly_equal(const Numbers& numbers, const Weight& weight);

/// New elements of a vector or of magnitudes after a cut, so that what is kept of the weight stays
/// what it was: of g, and of u. Empty if they stay, or if no factor brings that about.
struct Rescaled {
  TensorId tensor;
  Numbers numbers;  ///< of the tensor after the cut
};

/// @param cut  of a tensor: what is kept of it; null if it is not cut
std::optional<Rescaled> rescaled(const Composition& composition, const Checkpoint& checkpoint,
                                 const std::function<const std::vector<AxisKeep>*(TensorId)>& cut);

}  // namespace parsimony::checkpoints
