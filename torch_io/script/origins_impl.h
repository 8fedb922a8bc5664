// Where the integers and tensors of the Graph are written in the jit graph, so that they can be
// changed there.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/torch_io/script/binding_impl.h"

namespace parsimony::torch_io::script {

/// An integer that repeats a size of a tensor: the normalized_shape of a layer_norm.
struct Follower {
  Place place;
  ValueId value = parsimony::kNone;
  int dim = 0;
};

/// A number that the operator itself derives from a size, and that must stay as it is when the size
/// changes: the scale of an attention.
struct Frozen {
  Place place;
  ValueId value = parsimony::kNone;
  int dim = 0;
  double number = 0;
};

/// A size that a number was computed from: one dimension, or kNone for all of them.
struct Size {
  ValueId value = parsimony::kNone;
  int dim = parsimony::kNone;
};

/// A check that raises an exception. It goes if a size that it looks at changes.
struct Check {
  torch::jit::Node* node = nullptr;
  std::vector<Size> sizes;
};

/// Where a tensor lives: in attributes of modules, or as a constant of the graph. Neither: it was
/// made up by the reader, for an operand that the operator lets one leave out.
struct Home {
  at::Tensor tensor = {};  ///< dense, on the CPU
  at::Tensor source = {};  ///< as the module holds it
  torch::jit::Node* constant = nullptr;
  bool made_up = false;
};

/// How a constant operand is written. Elements without a place can not be changed.
struct Written {
  std::vector<Place> elements;
  bool negated = false;      ///< written with the other sign: the shift of a roll
  bool equal_parts = false;  ///< the operator makes equal parts; says nothing of their size
  ValueId start_of = parsimony::kNone;  ///< the length stands there, beside this constant as start
};

struct Origins {
  torch::jit::Module module;  ///< a private copy of types, graphs and structure, not of tensors
  std::shared_ptr<torch::jit::Graph> graph;  ///< its forward, inlined in place
  std::vector<torch::jit::Node*> calls;
  std::unordered_map<ValueId, Written> constants;
  /// Of lists that are put together from others; 0 where rounds of a loop make longer ones.
  std::unordered_map<const torch::jit::Value*, size_t> lengths;
  std::unordered_map<NodeId, std::vector<Place>> operands;
  std::unordered_map<NodeId, std::vector<std::pair<std::string, Place>>> attributes;
  std::vector<Follower> followers;
  std::vector<Frozen> frozen;
  std::vector<Check> checks;
  std::unordered_map<std::string, Home> homes;  ///< by name of the weight
  std::deque<std::vector<std::byte>> storage;   ///< of constants
  Probe probe;
};

}  // namespace parsimony::torch_io::script
