// What a recipe follows while a network trains towards its last cut.
#pragma once

#include <functional>
#include <optional>

#include "parsimony/configs/recipe.h"
#include "parsimony/training/loop/movement.h"
#include "parsimony/training/loop/penalty.h"
#include "parsimony/training/run/rewind.h"

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace parsimony::training {

/// The penalty, the movement of weights and the earlier weights to return to: each where the recipe
/// asks for it. Cut along with the network.
class BetweenCuts {
 public:
  /// @throws ConfigError if what is followed does not go with the recipe's batch norms
  BetweenCuts(const Recipe& recipe, Net& net);

  /// @returns what is to happen between gradients and optimizer; empty behind the last cut
  /// @throws ConfigError if slimming finds no scale
  std::function<void()> begin_stage(const at::Tensor& example, bool before_last_cut);
  void begin_epoch();
  /// `epochs` of warm-up are done.
  void end_warm_up_epoch(int epochs);
  /// Cuts along, and returns the network's weights to earlier ones.
  void follow(const Plan& plan);

  /// Adds to `by_data` the movement of the training so far.
  Measurement with_movement(Measurement by_data) const;

  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);

 private:
  bool rewinds_to(int epoch) const;

  const Recipe& recipe_;
  Net& net_;
  std::optional<Penalty> penalty_;  ///< of the stage
  std::optional<Rewind> rewind_;
  std::optional<Movement> movement_;
};

}  // namespace parsimony::training
