// Which tensors of a checkpoint are an optimizer's, and of which parameters.
#pragma once

#include <string>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"

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

}  // namespace parsimony::checkpoints
