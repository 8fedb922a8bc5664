// Prunes TorchScript modules and compares them with their masked originals.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::test {

/// Saved and loaded: what a file would hold.
torch::jit::Module reloaded(const torch::jit::Module& module);

/// A module with this TorchScript source of methods, and these attributes.
torch::jit::Module scripted(const std::string& source,
                            const std::vector<std::pair<std::string, at::Tensor>>& parameters);

/// Shapes of tensors, values of integers.
std::vector<InputSpec> specs_of(const std::vector<c10::IValue>& inputs);

/// All tensors in what `forward` returns.
std::vector<at::Tensor> run(torch::jit::Module module, const std::vector<c10::IValue>& inputs);

struct Pruned {
  Pruning pruning;
  torch::jit::Module small;
  double difference = 0;  ///< from the masked original, by the largest magnitude
  /// Of the graph as our executor runs it from the module; empty if it cannot run it.
  std::optional<double> misread;
  std::string dump;  ///< of the original's graph
};

struct ScriptRequest {
  double ratio = 0.5;
  bool exact_only = true;
  Granularity granularity = Granularity::kChannel;
};

/// Prunes by magnitude and runs both on `inputs`.
Pruned prune(const torch::jit::Module& module, const std::vector<c10::IValue>& inputs,
             const ScriptRequest& request = {});

/// Sets to zero what the plan removes, in the module's own tensors.
void mask(const torch_io::ScriptGraph& script, const Plan& plan);

double relative_difference(const std::vector<at::Tensor>& found,
                           const std::vector<at::Tensor>& expected);

}  // namespace parsimony::test
