// The origins of the Graph's integers and tensors in the jit graph, where they can be changed.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/torch_io/script/binding_impl.h"

namespace parsimony::torch_io::script {

/// An integer that repeats a size of a tensor: the normalized_shape of a layer_norm.
struct SizeLiteral {
  SourceLocation location;
  ValueId value = parsimony::kNone;
  int dim = 0;
};

/// A number that is derived from a size, and that must not change with it: the scale of an
/// attention, the computed number of groups of a convolution.
struct ImplicitScale {
  SourceLocation location;
  ValueId value = parsimony::kNone;
  int dim = 0;
  double number = 0;
  bool whole = false;  ///< an integer
};

/// A size that a number was computed from: one dimension, or kNone for all of them.
struct Size {
  ValueId value = parsimony::kNone;
  int dim = parsimony::kNone;
};

/// A check that raises an exception. It is removed if one of its sizes changes.
struct Check {
  torch::jit::Node* node = nullptr;
  std::vector<Size> sizes;
};

/// Where a tensor is stored: in attributes of modules, or as a constant of the graph, or nowhere,
/// for the program computes it. If none of these, the reader synthesised it for an omitted operand.
struct TensorOrigin {
  at::Tensor tensor = {};  ///< dense, on the CPU
  at::Tensor source = {};  ///< as stored in the module
  torch::jit::Node* constant = nullptr;
  /// What the program computes from literals alone; a tensor of the module once it is edited.
  torch::jit::Value* computed = nullptr;
  bool synthetic = false;
};

/// The source locations of a constant operand. Elements without a location cannot be changed.
struct ConstantOrigin {
  std::vector<SourceLocation> elements;
  bool negated = false;      ///< negated in the program: the shift of a roll
  bool equal_parts = false;  ///< the operator makes equal parts without explicit sizes
  /// The location holds the length, and this constant is the start.
  ValueId start_of = parsimony::kNone;
};

struct Origins {
  torch::jit::Module module;  ///< a private copy of types, graphs and structure, but not of tensors
  std::shared_ptr<torch::jit::Graph> graph;  ///< its forward, inlined in place
  std::vector<torch::jit::Node*> calls;
  std::unordered_map<ValueId, ConstantOrigin> constants;
  std::unordered_map<const torch::jit::Value*, ValueId> tensors;  ///< as they are at the end
  std::unordered_set<const torch::jit::Value*> complex;           ///< of these
  /// Lengths of concatenated lists; 0 if iterations of a loop make them longer.
  std::unordered_map<const torch::jit::Value*, size_t> lengths;
  std::unordered_map<NodeId, std::vector<SourceLocation>> operands;
  std::unordered_map<NodeId, std::vector<std::pair<std::string, SourceLocation>>> attributes;
  std::vector<SizeLiteral> size_literals;
  std::vector<ImplicitScale> frozen;
  std::vector<Check> checks;
  std::unordered_map<std::string, TensorOrigin> tensor_origins;  ///< by name of the weight
  std::deque<std::vector<std::byte>> storage;                    ///< of constants
  Probe probe;
};

}  // namespace parsimony::torch_io::script
