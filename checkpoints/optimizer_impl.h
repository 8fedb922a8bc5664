// Optimizer states in a checkpoint: their tensors, the parameters they belong to, and their cuts.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/match.h"

namespace parsimony::checkpoints {

/// A state of a parameter: "exp_avg" of parameter 3.
struct ParameterState {
  TensorId tensor;
  std::string parameter;  ///< as the optimizer calls it: its number, or its name
};

/// An optimizer's state_dict, or a list with one tensor per parameter: shadow parameters of a
/// moving average, masters of mixed precision.
struct ParameterStates {
  std::string path;                ///< "optimizer_states.0"
  std::vector<std::string> order;  ///< the optimizer's parameters, in the order of its groups
  std::vector<size_t> groups;      ///< the number of parameters of each
  std::vector<std::string> names;  ///< theirs, where `param_names` says them
  std::vector<ParameterState> states;
  bool is_list = false;  ///< without an optimizer around it: perhaps of something else
};

std::vector<ParameterStates> optimizers_of(const Checkpoint& checkpoint);

/// The parameter's axes that a state has: all of them, or all but one in Adafactor's moments.
/// Empty if the state has another shape, or none to cut.
std::vector<int> state_axes(const StoredTensor& state, const Shape& parameter);

/// A tensor that may be a parameter.
struct ParameterTensor {
  TensorId tensor;
  std::string name;
};

/// Tensors that an optimizer's parameter may be, none of which is cut like another.
using Possible = std::vector<TensorId>;

/// For every parameter, in the order of `optimizers` and of their groups, the tensors that it may
/// be. Those that are frozen or no parameters have none in the optimizers. If `parameters` are in
/// the module's order, they stand in it within a group, and the groups are
///
/// - successive ranges, in any order, or
/// - classes: matrices and vectors, biases and others, matrices and gains and biases,
///   normalisations and others, low-rank factors and others; in any order
///
/// and the shapes of all states must fit. Otherwise shapes alone tell. Empty if nothing fits.
std::vector<Possible> possible_orders(std::span<const ParameterStates* const> optimizers,
                                      std::span<const ParameterTensor> parameters, bool in_order,
                                      const Checkpoint& checkpoint,
                                      const std::function<bool(TensorId, TensorId)>& are_cut_alike);

using Cuts = std::map<TensorId, std::vector<AxisKeep>>;

/// Do the same indices of the same axes stay? Both are in order of axes.
bool are_alike(const std::vector<AxisKeep>& a, const std::vector<AxisKeep>& b);

struct StateCut {
  TensorId state;
  TensorId parameter;
  std::vector<AxisKeep> axes = {};  ///< empty: it stays as it is
  std::string why_left = {};
};

/// Returns the cuts of all optimizers' states, and of lists with a tensor per parameter. @throws
/// UnsupportedError if a state may belong to parameters that are cut differently, or to none
std::vector<StateCut> cuts_of_states(const Checkpoint& checkpoint, const CheckpointMatch& match,
                                     const Cuts& cuts);

}  // namespace parsimony::checkpoints
