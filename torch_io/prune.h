// Prunes a live torch::nn module in place.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/speedup/proof.h"
#include "parsimony/torch_io/live/restore.h"
#include "parsimony/torch_io/mirror.h"
#include "parsimony/torch_io/optimizer.h"

namespace parsimony {

struct TorchPruneOptions {
  Granularity granularity = Granularity::kChannel;  ///< the config's wins, if it names one
  uint64_t seed = 0;                                ///< for criteria that draw at random
  bool exact_only = false;                          ///< leave groups that mix whole
  bool verify = true;                               ///< run masked original and small module
  ProofOptions proof = {};
  /// Runs data through the module, where a criterion needs it: training::measurement() makes one.
  Measurement measure = {};
  ScoreFunction score = {};    ///< a criterion of one's own, in place of what is asked for
  ChooseFunction choose = {};  ///< an allocator of one's own
};

/// The plan that was carried out, and what came of it.
struct Pruned : Plan {
  Cost dense;
  Cost small;
  Proof proof;
  std::vector<std::string> notes;
  std::vector<StageTime> times;
  /// The module's parameters by name; what `carry_over` follows them by.
  std::vector<NamedParameter> parameters;
};

/// Makes the module smaller: the same object, holders and parameters, with fewer channels. All or
/// nothing: if it throws, the module is as it was. `forward` runs the module; it is traced once
/// with `example`, in evaluation mode. Gradients are sliced like their parameters.
/// @throws UnsupportedError if the module's own forward is written for the old sizes, as
/// `x.view({n, 512})` is: the message names the call
/// @throws VerificationError if the small module does not compute what the masked original does
/// @throws ConfigError, ModelError
Pruned prune(torch::nn::Module& module, const torch_io::Forward& forward,
             const std::vector<at::Tensor>& example, const ConfigList& config,
             const TorchPruneOptions& options = {});

/// The same for anything with a `forward(Tensor)`: a module, or a holder of one. `example` gives
/// the shape and type of the input, `[batch, ...]`.
///
///     auto plan = parsimony::prune(model, torch::rand({1, 3, 32, 32}), read_config("l1.json"));
///     parsimony::carry_over(optimizer, plan);
///     plan.save("small.plan.json");
template <typename Model>
Pruned prune(Model& model, const at::Tensor& example, const ConfigList& config,
             const TorchPruneOptions& options = {}) {
  if constexpr (requires { model->forward(example); }) {
    const auto run = [&](const std::vector<at::Tensor>& x) { return model->forward(x.at(0)); };
    return prune(*model, run, {example}, config, options);
  } else {
    const auto run = [&](const std::vector<at::Tensor>& x) { return model.forward(x.at(0)); };
    return prune(model, run, {example}, config, options);
  }
}

/// Cuts the optimizer's state as the module was; see optimizer.h.
inline CarriedOver carry_over(torch::optim::Optimizer& optimizer, const Pruned& plan) {
  return carry_over(optimizer, plan, plan.parameters);
}

}  // namespace parsimony
