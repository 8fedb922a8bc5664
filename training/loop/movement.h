// Which weights move away from zero while a network trains.
#pragma once

#include "parsimony/pruners/statistics.h"
#include "parsimony/training/net/named_tensors.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// Adds up -g·w of every step: positive for weights that grow, negative for those that shrink. As
/// much memory as the parameters, however long the training.
/// @source Sanh et al., Movement Pruning: Adaptive Sparsity by Fine-Tuning, 2020, equation 3,
/// without the constant factor of the learning rate
class Movement {
 public:
  /// Nothing has moved yet.
  explicit Movement(Net& net);
  explicit Movement(NamedTensors sums) : sums_(std::move(sums)) {}

  /// One step of the training: to be called between gradients and optimizer.
  void see(Net& net);
  /// Cuts along with the network.
  void follow(const Plan& plan) { training::follow(plan, sums_); }

  /// Measure::kMovement per channel: the sums over the matrices that produce it.
  Statistics statistics(const Graph& graph, const Coupling& coupling) const;

  const NamedTensors& sums() const { return sums_; }

 private:
  NamedTensors sums_;
};

}  // namespace parsimony::training
