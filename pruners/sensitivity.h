// How much a network suffers when one group alone loses channels, and what follows for ratios.
#pragma once

#include <span>
#include <vector>

namespace parsimony {

/// Errors of the network by the share of channels that one group has lost.
struct SensitivityCurve {
  int size = 0;                ///< channels of the group
  std::vector<double> ratios;  ///< ascending, above 0 and below 1
  std::vector<double> errors;  ///< one for each; 0 is the network as it was

  /// Largest ratio at which the error stays within `level`, linear between the points; errors that
  /// fall again are taken to stay. 0 at ratio 0; no more than the last ratio.
  double ratio_at(double level) const;
};

struct RatioProposal {
  std::vector<double> ratios;  ///< per curve
  double level = 0;            ///< the error that every group alone may cause
  double reached = 0;          ///< share of all curves' channels that goes
};

/// The largest ratios of equal error: the lowest level at which at least `ratio` of the channels
/// of all curves go, 0 <= ratio < 1. Where even the last points do not reach it, those.
/// @source Han et al., Learning both Weights and Connections, 2015 (sensitivity by layer); Li et
/// al., Pruning Filters for Efficient ConvNets, 2017
RatioProposal propose_ratios(std::span<const SensitivityCurve> curves, double ratio);

}  // namespace parsimony
