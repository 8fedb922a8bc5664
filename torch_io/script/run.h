// Runs TorchScript with libtorch's interpreter.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "parsimony/speedup/plan.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::torch_io {

/// The module's `forward` in evaluation mode, without gradients. Outputs are the tensors of its
/// result, including those in tuples, lists and dictionaries.
TorchNetwork script_run(const torch::jit::Module& module);

/// Runs `graph`, which takes the arguments of the module's `forward`, in the same way. Arguments
/// beyond `inputs` have their defaults.
std::vector<c10::IValue> run_graph(const torch::jit::Module& module,
                                   const std::shared_ptr<torch::jit::Graph>& graph,
                                   const std::vector<at::Tensor>& inputs);

/// Like `script_run` on bound inputs, without its work around each call: the module is in
/// evaluation mode, and its buffers are not restored, until the result is destroyed. It is how
/// `script_run` is timed.
TorchNetwork::Bound bound_script(const torch::jit::Module& module,
                                 const std::vector<at::Tensor>& inputs);

/// Programs of this thread run as they are written for a while. The interpreter rewrites a graph
/// after it has seen it run, and then rounds otherwise: a training that was taken up again would
/// not end as one that went through. Not for reading: that asks for graphs with all calls written
/// out, and a function that has run as written keeps the calls.
class AsWritten {
 private:
  torch::jit::GraphOptimizerEnabledGuard guard_{false};
};

/// The network, each run of which is so.
TorchNetwork as_written(TorchNetwork network);

/// Are all tensors that the plan changes there to be zeroed, or does the program compute some?
bool has_all(const ScriptGraph& script, const Plan& plan);

/// `script_run` with the plan's slices zeroed, which `script` has all. `script` was read from the
/// module.
TorchNetwork zeroed_run(const torch::jit::Module& module, const ScriptGraph& script,
                        const Plan& plan);

}  // namespace parsimony::torch_io
