// What a group's channels are worth to what the network says.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "parsimony/api/trial.h"
#include "parsimony/pruners/budget.h"

namespace parsimony {

/// How much of what the outputs say a smaller network still says, 0..1: for one,
/// NetworkComparison::explained().
using Fidelity = std::function<double(const Graph& small)>;

/// Runs the network with one group alone narrow, at each tenth of its channels.
class WorthMeter {
 public:
  /// Asks for the fidelity of the whole network. What is handed over must outlive the meter.
  WorthMeter(const Coupled& network, const Fidelity& fidelity);

  /// Of what the whole network says, the share that remains when `groups`, which lose the same
  /// channels, keep only the candidate's best 0, 1, … channels: 0..1, ascending, linear between
  /// the widths that were run. Empty where nothing remains at any of them, or they cannot be cut.
  std::vector<double> shares(std::span<const int> groups, const Candidate& candidate) const;

 private:
  Coupled network_;
  const Fidelity& fidelity_;
  double whole_ = 1;
};

}  // namespace parsimony
