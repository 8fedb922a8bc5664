// State that a recipe tracks until the last cut.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/training/net/parameter_groups.h"
#include "parsimony/training/net/trainable_model.h"

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace parsimony::training {

/// Movement scores: whether weights move away from zero during training.
///
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

  /// Returns Measure::kMovement per channel: the sums over the matrices that produce it.
  Statistics statistics(const Graph& graph, const Coupling& coupling) const;

  const NamedTensors& sums() const { return sums_; }

 private:
  NamedTensors sums_;
};

/// Sparsity-inducing penalties that shrink channels during training, so that their removal costs
/// little.
///
/// Slimming: λ Σ |γ|, the scales of BatchNorms whose channels can be pruned; its gradient is λ
/// sign(γ). Group: λ Σ_g Σ_c ½ s_c ‖w_c‖², w_c all slices of channel c in the members of its group,
/// with s_c = 2^(4 (I_max - I_c) / (I_max - I_min)), I_c = ‖w_c‖²: from 1 for the strongest channel
/// of a group to 16 for the weakest. The strengths s_c are updated every epoch and are constants in
/// between.
/// @source Liu et al., Learning Efficient Convolutional Networks through Network Slimming, 2017
/// @source Fang et al., DepGraph: Towards Any Structural Pruning, 2023, section 3.3
class Penalty {
 public:
  Penalty(const PenaltySettings& settings, std::vector<ParameterGroup> groups);

  /// Recomputes the strengths from the current weights.
  void begin_epoch();
  /// Adds its gradient to the parameters'. Call after `backward`.
  void add_gradients() const;
  /// Returns the penalty term of the loss, with the strengths of the epoch.
  double value() const;

 private:
  PenaltySettings settings_;
  std::vector<ParameterGroup> groups_;
  std::vector<at::Tensor> strength_;  ///< per group, [channels]
};

/// Returns ‖w_c‖² per channel, over all slices. [channels]
at::Tensor squared_norms(const ParameterGroup& group);

/// Parameters and buffers of an earlier epoch, sliced along with the network.
/// @source Frankle and Carbin, The Lottery Ticket Hypothesis, 2019; returning to a later epoch than
/// the first: Frankle et al., Linear Mode Connectivity and the Lottery Ticket Hypothesis, 2020
class Rewind {
 public:
  /// Copies the network's current values.
  explicit Rewind(TrainableModel& net);
  /// Uses saved values.
  explicit Rewind(NamedTensors values) : values_(std::move(values)) {}

  /// Slices the values like the network. @throws ModelError if the plan is for another network
  void follow(const Plan& plan) { training::follow(plan, values_); }
  /// Restores the values. @throws ModelError if the network's tensors do not match
  void restore(TrainableModel& net) const;

  const NamedTensors& values() const { return values_; }

 private:
  NamedTensors values_;
};

/// The penalty, movement scores and weights for rewinding, whichever the recipe uses. Sliced along
/// with the network.
class BetweenCuts {
 public:
  /// @throws ConfigError if they cannot be combined with the recipe's batch norms
  BetweenCuts(const Recipe& recipe, TrainableModel& net);

  /// @returns the hook between backward and optimizer step; empty after the last cut
  /// @throws ConfigError if slimming finds no BatchNorm scale
  std::function<void()> begin_stage(const at::Tensor& example, bool before_last_cut);
  void begin_epoch();
  /// Called after `epochs` of warm-up.
  void end_warm_up_epoch(int epochs);
  /// Slices the tracked tensors, and rewinds the network's weights.
  void follow(const Plan& plan);

  /// Adds the movement scores so far to `by_data`.
  Measurement with_movement(Measurement by_data) const;

  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);

 private:
  bool rewinds_to(int epoch) const;

  const Recipe& recipe_;
  TrainableModel& net_;
  std::optional<Penalty> penalty_;  ///< of the stage
  std::optional<Rewind> rewind_;
  std::optional<Movement> movement_;
};

}  // namespace parsimony::training
