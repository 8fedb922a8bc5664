// Earlier weights of a network, for what a cut leaves of it to return to.
#pragma once

#include <utility>

#include "parsimony/speedup/plan.h"
#include "parsimony/training/net/named_tensors.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// Parameters and buffers as they were once, cut along with the network.
/// @source Frankle and Carbin, The Lottery Ticket Hypothesis, 2019; returning to a later epoch than
/// the first: Frankle et al., Linear Mode Connectivity and the Lottery Ticket Hypothesis, 2020
class Rewind {
 public:
  /// Copies what the network holds now.
  explicit Rewind(Net& net);
  /// Values of an earlier one.
  explicit Rewind(NamedTensors values) : values_(std::move(values)) {}

  /// Cuts the values as the plan cut the network. @throws ModelError if it is of another
  void follow(const Plan& plan) { training::follow(plan, values_); }
  /// Gives the network the values. @throws ModelError if its tensors are others
  void restore(Net& net) const;

  const NamedTensors& values() const { return values_; }

 private:
  NamedTensors values_;
};

}  // namespace parsimony::training
