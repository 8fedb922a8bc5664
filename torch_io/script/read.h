// Reads TorchScript into a Graph: traced, scripted and frozen modules, and torch::nn modules
// through mirror.h.
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

/// A module as analysed. Its weights are the module's own tensors, which must not change their size
/// while the Graph is used; they are named by their attributes: "layer1.0.conv1.weight". A node is
/// named after the module whose weight it reads, else after its operator with a number: "relu_3".
struct ScriptGraph {
  Graph graph;
  std::shared_ptr<script::Origins> origins;  ///< source locations, for the editor
  /// Names of the results, one per output: the key of a dictionary, the field of a named tuple,
  /// else "output", numbered if there are several.
  std::vector<std::string> results;
  size_t numbers = 0;  ///< results other than tensors, computed at run time
};

/// Handling of tensors that a program computes from literals only, such as the frequencies of a
/// time
/// embedding, `exp(arange(16) * -0.5)`.
enum class Computed {
  kAreWeights,  ///< become buffers of the module when edited
  kStay,        ///< not editable: the program is the trace of a live module
};

/// Reads the module's `forward` for inputs of the specified sizes, in evaluation mode regardless of
/// the module's mode. Conditions that depend on constants of the module, ranks or the sizes of
/// `inputs` are resolved statically; other control flow and unknown operators become opaque nodes
/// that pin their operands. If there are any, the module is run on random numbers to determine the
/// sizes of their results.
///
///     ScriptGraph script = read_script(torch::jit::load("net.pt"), {{{1, 3, 32, 32}, {}}});
///     Pruning pruning = plan_pruning(script.graph, config);
///
/// @throws ConfigError if `inputs` has no shape for some tensor that `forward` takes
/// @throws ModelError if the module has no `forward`, or does not take inputs of these sizes
ScriptGraph read_script(const torch::jit::Module& module, const std::vector<InputSpec>& inputs,
                        Computed computed = Computed::kAreWeights);

/// Whether the program computes the weight from literals, so that the module does not have it yet.
bool is_computed(const ScriptGraph& script, const std::string& weight);

/// Whether the reader synthesised the weight for an omitted optional operand. No module has it.
bool is_synthetic(const ScriptGraph& script, const std::string& weight);

}  // namespace parsimony::torch_io
