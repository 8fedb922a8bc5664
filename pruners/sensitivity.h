// How much a network degrades when a single group loses channels, and the ratios that follow.
#pragma once

#include <span>
#include <vector>

namespace parsimony {

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
