// The importance that a candidate retains as a function of its width: 1 with all of its channels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "parsimony/pruners/budget.h"

namespace parsimony {

/// The share of the total importance that the best 0, 1, … channels of groups that lose the same
/// ones retain: 0..1, ascending; empty if unknown.
using ImportanceCurves =
    std::function<std::vector<double>(std::span<const GroupId> groups, const Candidate& candidate)>;

/// Cumulative scores of the best 0, 1, … channels, as shares of the total. If the scores are
/// uninformative, all channels count the same.
std::vector<double> score_curve(const Candidate& candidate);

/// The curve for all widths, interpolated linearly from ascending known points, with 0 for no
/// channels and 1 for all. Made monotonic: importance never falls as a group grows.
std::vector<double> interpolated_curve(int size, std::span<const std::pair<int, double>> known);

/// ln of a share of importance: the sum over groups is the logarithm of the product of their
/// shares. Finite for a share of 0.
double log_importance(double share);

/// Scores that rank the channels of all candidates by importance per cost: each is the slope of the
/// lower convex hull of −log_importance over the number of removed channels, divided by `cost`, the
/// budget that one channel takes. Removing the lowest first is the greedy solution of the knapsack.
/// @source Sinha and Zoltners, The Multiple-Choice Knapsack Problem, 1979 (the hull)
std::vector<double> importance_scores(const Candidate& candidate, std::span<const double> curve,
                                      double cost);

/// Marks the candidate's best `width` channels as kept, the others as removed.
void keep_best(const Candidate& candidate, int width, std::vector<uint8_t>& keep);

}  // namespace parsimony
