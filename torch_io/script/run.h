// Runs TorchScript by libtorch's own interpreter.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include "parsimony/speedup/plan.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::torch_io {

/// The module's `forward` in evaluation mode, without gradients. Outputs are the tensors of its
/// result, those in tuples, lists and dictionaries included.
TorchNetwork script_run(const torch::jit::Module& module);

/// What `graph` gives in the same circumstances: a graph of the arguments of `forward`, which is
/// the module's. Arguments beyond `inputs` are their defaults.
std::vector<c10::IValue> run_graph(const torch::jit::Module& module,
                                   const std::shared_ptr<torch::jit::Graph>& graph,
                                   const std::vector<at::Tensor>& inputs);

/// The same as `script_run` on inputs that stay, without what `script_run` does around each call:
/// the module is in evaluation mode, and its buffers go their own way, until the result is gone.
/// It is how `script_run` is timed.
TorchNetwork::Bound bound_script(const torch::jit::Module& module,
                                 const std::vector<at::Tensor>& inputs);

/// `script_run` with zeros in what the plan removes. `script` was read from the module.
TorchNetwork zeroed_run(const torch::jit::Module& module, const ScriptGraph& script,
                        const Plan& plan);

}  // namespace parsimony::torch_io
