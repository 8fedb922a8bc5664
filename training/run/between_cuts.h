// What a recipe tracks until the last cut.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "parsimony/configs/recipe.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/training/loop/movement.h"
#include "parsimony/training/loop/penalty.h"
#include "parsimony/training/net/trainable_model.h"

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace parsimony::training {

/// Parameters and buffers of an earlier epoch, sliced along with the network.
/// @source Frankle and Carbin, The Lottery Ticket Hypothesis, 2019; returning to a later epoch than
/// the first: Frankle et al., Linear Mode Connectivity and the Lottery Ticket Hypothesis, 2020
class Rewind {
 public:
  /// Copies the network's current values.
  explicit Rewind(TrainableModel& net);
  /// From saved values.
  explicit Rewind(NamedTensors values) : values_(std::move(values)) {}

  /// Slices the values like the network. @throws ModelError if the plan is for another network
  void follow(const Plan& plan) { training::follow(plan, values_); }
  /// Restores the values. @throws ModelError if the network's tensors do not match
  void restore(TrainableModel& net) const;

  const NamedTensors& values() const { return values_; }

 private:
  NamedTensors values_;
};

/// The penalty, movement scores and weights for rewinding, as far as the recipe uses them. Sliced
/// along with the network.
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
