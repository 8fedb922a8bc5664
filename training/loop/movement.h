// Movement scores: which weights move away from zero during training.
#pragma once

#include "parsimony/pruners/statistics.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

/// Accumulates -g·w of every step: positive for weights that grow, negative for those that shrink.
/// Takes as much memory as the parameters, however long the training.
/// @source Sanh et al., Movement Pruning: Adaptive Sparsity by Fine-Tuning, 2020, equation 3,
/// without the constant factor of the learning rate
class Movement {
 public:
  /// Starts with zero sums.
  explicit Movement(TrainableModel& net);
  explicit Movement(NamedTensors sums) : sums_(std::move(sums)) {}

  /// Accumulates one step; call between backward and the optimizer step.
  void see(TrainableModel& net);
  /// Slices the sums like the network.
  void follow(const Plan& plan) { training::follow(plan, sums_); }

  /// Measure::kMovement per channel: the sums over the matrices that produce it.
  Statistics statistics(const Graph& graph, const Coupling& coupling) const;

  const NamedTensors& sums() const { return sums_; }

 private:
  NamedTensors sums_;
};

}  // namespace parsimony::training
