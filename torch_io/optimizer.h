// An optimizer goes on with a pruned module: its state is cut as the parameters were.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A parameter that took the place of another, and what stayed of it.
struct ReplacedParameter {
  std::string name;  ///< for messages
  at::Tensor before;
  at::Tensor after;
  std::vector<AxisKeep> axes;
};

struct CarriedOver {
  int tensors = 0;                 ///< state tensors that were cut
  std::vector<std::string> notes;  ///< what could not be carried over, and why
};

/// Cuts the optimizer's state along the plan, after the module was pruned in place. Moments keep
/// their values for what stays, so that the next step on it is the step that the masked network
/// would take; step counts and options stay. State that already has its parameter's shape is left,
/// hence a second call changes nothing.
///
/// SGD, Adam, AdamW, RMSprop, Adagrad. What LBFGS remembers joins all parameters: it starts afresh,
/// and a note says so.
///
///     editor.keep();
///     parsimony::carry_over(optimizer, plan, *net);
///
/// Nothing has changed if it throws.
/// @throws ModelError, naming the parameter, if its state fits neither its shape nor the plan;
/// UnsupportedError for an optimizer of unknown type that has state
CarriedOver carry_over(torch::optim::Optimizer& optimizer, const Plan& plan,
                       const torch::nn::Module& module);

using NamedParameter = std::pair<std::string, at::Tensor>;

/// The same for parameters by name, where there is no module at hand.
CarriedOver carry_over(torch::optim::Optimizer& optimizer, const Plan& plan,
                       std::span<const NamedParameter> parameters);

/// For layers made anew: the optimizer takes `after` for `before`, in its group and with its state.
/// @throws ModelError also if the optimizer does not hold `before`
CarriedOver carry_over(torch::optim::Optimizer& optimizer,
                       std::span<const ReplacedParameter> parameters);

}  // namespace parsimony
