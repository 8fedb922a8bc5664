// Runs TorchScript with libtorch's interpreter.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "parsimony/speedup/plan.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/read.h"

namespace parsimony::torch_io {

/// Returns the module's `forward` in evaluation mode, without gradients. Outputs are the tensors of
/// its result, including those in tuples, lists and dictionaries.
TorchNetwork script_run(const torch::jit::Module& module);

/// Runs `graph`, which takes the arguments of the module's `forward`, likewise. Arguments beyond
/// `inputs` have their defaults.
std::vector<c10::IValue> run_graph(const torch::jit::Module& module,
                                   const std::shared_ptr<torch::jit::Graph>& graph,
                                   const std::vector<at::Tensor>& inputs);

/// Like `script_run` on bound inputs, without its overhead per call: the module is in evaluation
/// mode, and its buffers are not restored, until the result is destroyed. Used for timing.
TorchNetwork::Bound bound_script(const torch::jit::Module& module,
                                 const std::vector<at::Tensor>& inputs);

/// Disables graph optimisation in this thread during its lifetime. The interpreter otherwise
/// rewrites a graph after its first runs, which changes rounding: a resumed training would not end
/// like an uninterrupted one. Not for reading, which needs graphs with all calls inlined: a
/// function that ran without optimisation keeps its calls.
class AsWritten {
 private:
  torch::jit::GraphOptimizerEnabledGuard guard_{false};
};

/// Wraps a network so that each run is AsWritten.
TorchNetwork as_written(TorchNetwork network);

/// Whether the module has all tensors that the plan changes, rather than computing some of them.
bool has_all(const ScriptGraph& script, const Plan& plan);

/// Like `script_run` with the plan's slices zeroed; requires `has_all`. `script` was read from the
/// module.
TorchNetwork zeroed_run(const torch::jit::Module& module, const ScriptGraph& script,
                        const Plan& plan);

}  // namespace parsimony::torch_io
