// A jit graph during reading: its abstract values, and where the Graph's integers and tensors come
// from, so that they can be changed there.
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
#include "parsimony/graph/infer.h"

namespace parsimony::torch_io::script {

struct Object;  // a module instance: interpreter_impl.h

/// A location in the jit graph: input `input` of call `call`, or element `item` of the list at that
/// input.
struct SourceLocation {
  int call = kNone;
  int input = kNone;
  int item = kNone;

  bool known() const { return call != kNone; }
  bool operator==(const SourceLocation&) const = default;
};

enum class BindingKind : uint8_t {
  kUnknown,  ///< only known at run time
  kNone,
  kInt,
  kFloat,
  kBool,
  kString,
  kTensor,  ///< `value` of the graph
  kNumber,  ///< a number known at run time: a size, or computed from sizes; `value`, of rank 0
  kList,    ///< a list or a tuple
  kObject,
};

/// The `text` of a list with the alternating keys and values of a dictionary.
inline constexpr const char* kDictionary = "dictionary";

struct Binding {
  BindingKind kind = BindingKind::kUnknown;
  int64_t integer = 0;  ///< kInt, kBool
  double number = 0;    ///< kFloat
  std::string text = {};
  ValueId value = parsimony::kNone;
  std::shared_ptr<std::vector<Binding>> items = {};  ///< shared: lists may grow
  std::shared_ptr<const Object> object = {};

  bool is(BindingKind k) const { return kind == k; }
  /// Whether it is a statically known number.
  bool fixed_number() const {
    return kind == BindingKind::kInt || kind == BindingKind::kFloat || kind == BindingKind::kBool;
  }
  bool is_number() const { return fixed_number() || kind == BindingKind::kNumber; }
  double as_double() const {
    return kind == BindingKind::kFloat ? number : static_cast<double>(integer);
  }

  static Binding none() { return {.kind = BindingKind::kNone}; }
  static Binding of_int(int64_t v) { return {.kind = BindingKind::kInt, .integer = v}; }
  static Binding of_bool(bool v) { return {.kind = BindingKind::kBool, .integer = v ? 1 : 0}; }
  static Binding of_float(double v) { return {.kind = BindingKind::kFloat, .number = v}; }
  static Binding of_text(std::string v) {
    return {.kind = BindingKind::kString, .text = std::move(v)};
  }
  static Binding tensor(ValueId v) { return {.kind = BindingKind::kTensor, .value = v}; }
  static Binding run_time(ValueId v) { return {.kind = BindingKind::kNumber, .value = v}; }
  static Binding list(std::vector<Binding> v) {
    return {.kind = BindingKind::kList,
            .items = std::make_shared<std::vector<Binding>>(std::move(v))};
  }
};

/// An integer that repeats a size of a tensor: the normalized_shape of a layer_norm.
struct SizeLiteral {
  SourceLocation location;
  ValueId value = parsimony::kNone;
  int dim = 0;
};

/// A number derived from a size that must not change with it: the scale of an attention, the
/// computed number of groups of a convolution.
struct ImplicitScale {
  SourceLocation location;
  ValueId value = parsimony::kNone;
  int dim = 0;
  double number = 0;
  bool whole = false;  ///< an integer
};

/// A size from which a number was computed: one dimension, or kNone for all of them.
struct Size {
  ValueId value = parsimony::kNone;
  int dim = parsimony::kNone;
};

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
  bool synthetic = false;
};

/// Source locations of a constant operand. Elements without a location cannot be changed.
struct ConstantOrigin {
  std::vector<SourceLocation> elements;
  bool negated = false;      ///< negated in the program: the shift of a roll
  bool equal_parts = false;  ///< the operator splits equally without explicit sizes
  /// The location specifies the length, and this constant is the start.
  ValueId start_of = parsimony::kNone;
};

struct Origins {
  torch::jit::Module module;  ///< a private copy of types, graphs and structure, but not of tensors
  std::shared_ptr<torch::jit::Graph> graph;  ///< its forward, inlined in place
  std::vector<torch::jit::Node*> calls;
  std::unordered_map<ValueId, ConstantOrigin> constants;
  std::unordered_map<const torch::jit::Value*, ValueId> tensors;  ///< after all in-place changes
  std::unordered_set<const torch::jit::Value*> complex;  ///< those of them that are complex
  /// Lengths of concatenated lists; 0 if iterations of a loop make them longer.
  std::unordered_map<const torch::jit::Value*, size_t> lengths;
  std::unordered_map<NodeId, std::vector<SourceLocation>> operands;
  std::unordered_map<NodeId, std::vector<std::pair<std::string, SourceLocation>>> attributes;
  std::vector<SizeLiteral> size_literals;
  std::vector<ImplicitScale> frozen;
  std::vector<Check> checks;
  std::unordered_map<std::string, TensorOrigin> tensor_origins;  ///< by the weight's name
  std::deque<std::vector<std::byte>> storage;                    ///< memory of constants
  Probe probe;
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
