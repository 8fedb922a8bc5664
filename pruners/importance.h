// Importance curves: the share of its importance that a group retains as a function of its width,
// how much a network degrades when a single group loses channels, and the ratios that follow.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "parsimony/pruners/budget.h"

namespace parsimony {

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

/// The network's error as a function of the share of channels that one group has lost.
struct SensitivityCurve {
  int size = 0;                ///< channels of the group
  std::vector<double> ratios;  ///< ascending, above 0 and below 1
  std::vector<double> errors;  ///< one for each; 0 is the network as it was

  /// Largest ratio at which the error stays within `level`, interpolated linearly; the curve is
  /// taken as non-decreasing and starts with error 0 at ratio 0. At most the last ratio.
  double ratio_at(double level) const;
};

struct RatioProposal {
  std::vector<double> ratios;  ///< per curve
  double level = 0;            ///< the error that every group alone may cause
  double reached = 0;          ///< share of the channels of all curves that is removed
};

/// Ratios of equal error: at the lowest level at which at least `ratio` of the channels of all
/// curves are removed, 0 <= ratio < 1. If even the last points do not reach it, the last points.
/// @source Han et al., Learning both Weights and Connections, 2015 (sensitivity by layer); Li et
/// al., Pruning Filters for Efficient ConvNets, 2017
RatioProposal propose_ratios(std::span<const SensitivityCurve> curves, double ratio);

}  // namespace parsimony
