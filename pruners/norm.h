// Norms of weight slices at memory speed: the basis of L1, L2 and related criteria.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/members.h"

namespace parsimony {

enum class Power : uint8_t { kOne = 1, kTwo = 2 };

/// Indices [begin, end) along an axis of a weight.
struct Window {
  int axis = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Σ |w|^power over each slice in the window. Relative to the axis the weight is [outer, size,
/// inner]; the result has `end - begin` elements. Sums are in double.
/// @throws UnsupportedError for a type that has no magnitude
std::vector<double> slice_norms(const Weight& weight, const Window& window, Power power);

/// The same for integers that stand for (w - zero point) · scale.
std::vector<double> slice_norms(const Weight& weight, const Window& window, Power power,
                                const Quantised& quantised);

/// Σ |w|^power per channel, by default over the matrices (rank ≥ 2) that produce the channels:
/// convolution kernels and rows, not biases or normalisations. A group without such matrices is
/// summed over all its members. Notifies the graph's owner when a weight has been read.
/// @throws ModelError naming tensor and element if there is a NaN
Scores sum_members(const Graph& graph, const Group& group, Power power,
                   Which which = Which::kProducing);

}  // namespace parsimony
