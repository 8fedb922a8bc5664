// Carries an optimizer over to a pruned module: its state is sliced like the parameters.
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

/// A parameter that replaced another one, with the kept slices.
struct ReplacedParameter {
  std::string name;  ///< for messages
  at::Tensor before;
  at::Tensor after;
  std::vector<AxisKeep> axes;
};

struct CarriedOver {
  int tensors = 0;                 ///< state tensors that were sliced
  std::vector<std::string> notes;  ///< what could not be carried over, and why
};

/// Slices the optimizer's state according to the plan, after the module was pruned in place. The
/// remaining moments keep their values, so that the next step is the one that the masked network
/// would take; step counts and options are preserved. State that already has its parameter's shape
/// is not changed, so a second call has no effect.
///
/// Supports SGD, Adam, AdamW, RMSprop and Adagrad. LBFGS has state that spans all parameters: it is
/// reset, with a note.
///
///     editor.keep();
///     parsimony::carry_over(optimizer, plan, *net);
///
/// All or nothing: if it throws, nothing has changed.
/// @throws ModelError, naming the parameter, if its state fits neither its shape nor the plan;
/// UnsupportedError for an optimizer of unknown type that has state
CarriedOver carry_over(torch::optim::Optimizer& optimizer, const Plan& plan,
                       const torch::nn::Module& module);

using NamedParameter = std::pair<std::string, at::Tensor>;

/// Like above, for parameters by name, without a module.
CarriedOver carry_over(torch::optim::Optimizer& optimizer, const Plan& plan,
                       std::span<const NamedParameter> parameters);

/// Carries state over to replaced layers: the optimizer uses `after` in place of `before`, in its
/// group and with its state.
/// @throws ModelError also if the optimizer does not have `before`
CarriedOver carry_over(torch::optim::Optimizer& optimizer,
                       std::span<const ReplacedParameter> parameters);

}  // namespace parsimony
