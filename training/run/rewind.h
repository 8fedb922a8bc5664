// Weight rewinding: earlier weights, restored after a cut.
#pragma once

#include <utility>

#include "parsimony/speedup/plan.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// Parameters and buffers of an earlier epoch, sliced along with the network.
/// @source Frankle and Carbin, The Lottery Ticket Hypothesis, 2019; returning to a later epoch than
/// the first: Frankle et al., Linear Mode Connectivity and the Lottery Ticket Hypothesis, 2020
class Rewind {
 public:
  /// Copies the network's current values.
  explicit Rewind(Net& net);
  /// From saved values.
  explicit Rewind(NamedTensors values) : values_(std::move(values)) {}

  /// Slices the values like the network. @throws ModelError if the plan is for another network
  void follow(const Plan& plan) { training::follow(plan, values_); }
  /// Restores the values. @throws ModelError if the network's tensors do not match
  void restore(Net& net) const;

  const NamedTensors& values() const { return values_; }

 private:
  NamedTensors values_;
};

}  // namespace parsimony::training
