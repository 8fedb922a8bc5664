// Prunes a live torch::nn module in place.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/optimizer.h>

#include <vector>

#include "parsimony/api/prune_model.h"
#include "parsimony/torch_io/mirror.h"
#include "parsimony/torch_io/optimizer.h"

namespace parsimony {

/// The result of pruning a live module.
struct Pruned : PruneResult {
  /// The module's parameters by name, for `carry_over`.
  std::vector<NamedParameter> parameters;
};

/// Prunes the module in place: objects and parameters keep their identity and lose channels. All or
/// nothing: if it throws, the module is unchanged. `forward` runs the module; it is traced once in
/// evaluation mode with `example`, whose sizes replace `request.inputs`. Gradients are sliced like
/// their parameters. training::measurement() and training::recovery() run data through the module.
/// @throws UnsupportedError if the module's own forward contains the old sizes, such as `x.view({n,
/// 512})`: the message names the call
/// @throws VerificationError if the small module does not compute what the masked original does
/// @throws ConfigError, ModelError
Pruned prune(torch::nn::Module& module, const torch_io::Forward& forward,
             const std::vector<at::Tensor>& example, const PruneRequest& request,
             const PruneServices& services = {});

/// Prunes anything with a `forward(Tensor)`: a module, or a holder of one. `example` has the shape
/// and type of the input, `[batch, ...]`.
///
///     auto pruned = parsimony::prune(model, torch::rand({1, 3, 32, 32}), read_config("l1.json"));
///     parsimony::carry_over(optimizer, pruned);
///     pruned.plan.save("small.plan.json");
template <typename Model>
Pruned prune(Model& model, const at::Tensor& example, const PruneRequest& request,
             const PruneServices& services = {}) {
  if constexpr (requires { model->forward(example); }) {
    const auto run = [&](const std::vector<at::Tensor>& x) { return model->forward(x.at(0)); };
    return prune(*model, run, {example}, request, services);
  } else {
    const auto run = [&](const std::vector<at::Tensor>& x) { return model.forward(x.at(0)); };
    return prune(model, run, {example}, request, services);
  }
}

/// Slices the optimizer's state like the module; see optimizer.h.
inline CarriedOver carry_over(torch::optim::Optimizer& optimizer, const Pruned& pruned) {
  return carry_over(optimizer, pruned.plan, pruned.parameters);
}

/// Slices a full-size module to the shapes of the plan, whatever its values. Value changes of the
/// plan (zeros, folded biases) are part of the weights that are loaded next. Sizes in the module's
/// forward are not changed; pruning has verified that they need no change.
///
///     Net net;
///     parsimony::restore(*net, "plan.json");
///     torch::load(net, "small.pt");
///
/// @throws IoError, ConfigError if the plan cannot be read; ModelError, UnsupportedError if it is
/// for another module, which is then unchanged
void restore(torch::nn::Module& module, const std::string& plan_path);
void restore(torch::nn::Module& module, const Plan& plan);

/// Restores the module of a holder.
template <typename Module, typename PlanOrPath>
void restore(torch::nn::ModuleHolder<Module>& holder, const PlanOrPath& plan) {
  restore(static_cast<torch::nn::Module&>(*holder), plan);
}

}  // namespace parsimony
