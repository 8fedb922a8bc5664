// A jit graph while it is read: the origins of the Graph's tensors in it, and the checks that may
// have to go.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/programs/builder.h"
#include "parsimony/programs/sources.h"

namespace parsimony::torch_io::script {

using programs::Binding;
using programs::BindingKind;
using programs::Builder;
using programs::ConstantOrigin;
using programs::Element;
using programs::ImplicitScale;
using programs::kDictionary;
using programs::NotLowered;
using programs::Object;
using programs::Operand;
using programs::Size;
using programs::SizeLiteral;
using programs::SourceLocation;

/// A check that raises an exception. It is removed if one of its sizes changes.
struct Check {
  torch::jit::Node* node = nullptr;
  std::vector<Size> sizes;
};

/// Storage of a tensor: attributes of modules, a constant of the graph, or none if the program
/// computes it. If none of these, the reader synthesised it for an omitted operand.
struct TensorOrigin {
  at::Tensor tensor = {};  ///< dense, on the CPU
  at::Tensor source = {};  ///< as stored in the module
  torch::jit::Node* constant = nullptr;
  /// Computed from literals only; becomes a tensor of the module once it is edited.
  torch::jit::Value* computed = nullptr;
};

struct Origins : programs::Sources {
  torch::jit::Module module;  ///< a private copy of types, graphs and structure, but not of tensors
  std::shared_ptr<torch::jit::Graph> graph;  ///< its forward, inlined in place
  std::vector<torch::jit::Node*> calls;
  /// Lengths of concatenated lists; 0 if iterations of a loop make them longer.
  std::unordered_map<const torch::jit::Value*, size_t> lengths;
  std::vector<Check> checks;
  std::unordered_map<std::string, TensorOrigin> tensor_origins;  ///< by name of the weight
};

/// Visits the nodes of a block in order, each before those of its own blocks.
template <typename Visit>
void for_each_node(torch::jit::Block& block, const Visit& visit) {
  for (torch::jit::Node* node : block.nodes()) {
    visit(node);
    for (torch::jit::Block* inner : node->blocks()) for_each_node(*inner, visit);
  }
}

}  // namespace parsimony::torch_io::script
