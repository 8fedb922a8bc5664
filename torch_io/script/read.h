// From TorchScript to the Graph: traced, scripted and frozen modules alike, and torch::nn modules
// by way of mirror.h.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/infer.h"

namespace parsimony::torch_io {

namespace script {
struct Origins;
}

/// A module as the analysis sees it. Its weights are the module's own tensors, which must not
/// change their size while the Graph is used; they are named by their attributes:
/// "layer1.0.conv1.weight". A node goes by the name of the module whose weight it reads, else by
/// its operator and a number: "relu_3".
struct ScriptGraph {
  Graph graph;
  std::shared_ptr<script::Origins> origins;  ///< where things are written: for the editor
  /// What the results are called, one for each output: the key of a dictionary, the field of a
  /// named tuple, else "output", with a number where there are several.
  std::vector<std::string> results;
  size_t numbers = 0;  ///< that the results have beside tensors, computed when the module runs
};

/// Follows the module's `forward` for inputs of the given sizes, in evaluation mode whatever the
/// module's mode is. Conditions that the constants of the module, ranks or the sizes of `inputs`
/// decide are followed into the block that is taken; other control flow, and operators that are not
/// known, stay whole and so does what they touch. Where there are such, the module is run on random
/// numbers to know the sizes of what they give; else nothing is run.
///
///     ScriptGraph script = read_script(torch::jit::load("net.pt"), {{{1, 3, 32, 32}, {}}});
///     Pruning pruning = plan_pruning(script.graph, config);
///
/// @throws ConfigError if `inputs` does not have a shape for every tensor that `forward` takes
/// @throws ModelError if the module has no `forward`, or does not take inputs of these sizes
ScriptGraph read_script(const torch::jit::Module& module, const std::vector<InputSpec>& inputs);

/// Is the weight made up by the reader, for an operand that the operator lets one leave out? No
/// module has it.
bool is_made_up(const ScriptGraph& script, const std::string& weight);

}  // namespace parsimony::torch_io
