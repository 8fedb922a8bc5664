// A plan on a freshly made module, which then takes the weights of the pruned one.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <string>

#include "parsimony/speedup/plan.h"

namespace parsimony {

/// Gives a full-size module the shapes that the plan says, whatever its values. Only shapes: what
/// pruning changed of values (zeros, folded biases) is among the weights that are loaded next.
/// Sizes that the module's forward has written out stay as they are written; the module that was
/// pruned ran without changing them, or it would have been refused.
///
///     Net net;
///     parsimony::restore(*net, "plan.json");
///     torch::load(net, "small.pt");
///
/// @throws IoError, ConfigError if the plan cannot be read; ModelError, UnsupportedError if it is
/// not of this module, which then is as before
void restore(torch::nn::Module& module, const std::string& plan_path);
void restore(torch::nn::Module& module, const Plan& plan);

/// The same for a holder of a module.
template <typename Module, typename PlanOrPath>
void restore(torch::nn::ModuleHolder<Module>& holder, const PlanOrPath& plan) {
  restore(static_cast<torch::nn::Module&>(*holder), plan);
}

}  // namespace parsimony
