// What becomes of the states of optimizers when their parameters are cut.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/match.h"

namespace parsimony::checkpoints {

using Cuts = std::map<TensorId, std::vector<AxisKeep>>;

/// Do the same indices of the same axes stay? Both are in order of axes.
bool are_alike(const std::vector<AxisKeep>& a, const std::vector<AxisKeep>& b);

struct StateCut {
  TensorId state;
  TensorId parameter;
  std::vector<AxisKeep> axes = {};  ///< empty: it stays as it is
  std::string why_left = {};
};

/// Of all optimizers, and of lists with a tensor per parameter. @throws UnsupportedError if a state
/// may belong to parameters that are cut differently, or to none
std::vector<StateCut> cuts_of_states(const Checkpoint& checkpoint, const CheckpointMatch& match,
                                     const Cuts& cuts);

}  // namespace parsimony::checkpoints
