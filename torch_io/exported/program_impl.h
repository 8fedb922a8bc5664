// A torch.export program as a TorchScript module: each node is one call, so that the rules of aten
// operators, the editor and libtorch's interpreter work for both.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/interface.h"
#include "parsimony/programs/exported/archive.h"

namespace parsimony::torch_io {

namespace exported {

/// A node of the program.
struct Step {
  std::string place;                   ///< JSON pointer
  std::vector<std::string> arguments;  ///< names, in the order of the call's inputs
  std::vector<std::string> outputs;    ///< values, with lists flattened
};

/// Relates names of one value in a graph and in a graph nested in it or around it.
struct Alias {
  std::string from_graph;  ///< JSON pointer
  std::string from;
  std::string to_graph;
  std::string to;
};

struct Program {
  torch::jit::Module module;
  std::vector<Step> steps;                          ///< see `step_of`
  std::map<std::string, std::string> placeholders;  ///< of tensors: attribute path to value
  std::vector<InputSpec> inputs;                    ///< as the program was exported
  std::vector<Alias> aliases;                       ///< each after those it refers to
};

/// The location of a program's own graph.
inline constexpr const char* kTopGraph = "/graph_module/graph";

/// Returns the graph that contains the node at that place.
std::string graph_of(const std::string& place);

/// @throws ModelError, naming the place, if it is not a program; UnsupportedError
Program assemble(const programs::Archive& archive, const std::string& path);

/// Returns the number of the step that a call belongs to; empty for constants and reads of
/// attributes.
std::optional<size_t> step_of(const torch::jit::Node& node);

/// Returns "layer1.0.weight" for the value of an attribute; empty for others.
std::string attribute_path(const torch::jit::Value& value);

}  // namespace exported
}  // namespace parsimony::torch_io
