// Applies a plan's shapes to a new module, which can then load the weights of the pruned one.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <string>

#include "parsimony/speedup/plan.h"

namespace parsimony {

/// Gives a full-size module the shapes of the plan, whatever its values. Value changes of the plan
/// (zeros, folded biases) are part of the weights that are loaded next. Sizes in the module's
/// forward are not changed; the pruned module ran without changing them, otherwise pruning would
/// have failed.
///
///     Net net;
///     parsimony::restore(*net, "plan.json");
///     torch::load(net, "small.pt");
///
/// @throws IoError, ConfigError if the plan cannot be read; ModelError, UnsupportedError if it is
/// for another module, which is then unchanged
void restore(torch::nn::Module& module, const std::string& plan_path);
void restore(torch::nn::Module& module, const Plan& plan);

/// The same for a holder of a module.
template <typename Module, typename PlanOrPath>
void restore(torch::nn::ModuleHolder<Module>& holder, const PlanOrPath& plan) {
  restore(static_cast<torch::nn::Module&>(*holder), plan);
}

}  // namespace parsimony
