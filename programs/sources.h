// A program while it is read: its abstract values, and the locations in it of the integers and
// tensors of the Graph, where they can be changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/graph/graph_builder.h"
#include "parsimony/graph/infer.h"

namespace parsimony::programs {

struct Object;  // a module instance of TorchScript

/// A location in a program: input `input` of call `call`, or element `item` of the list at that
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

/// Source locations of a constant operand. Elements without a location cannot be changed.
struct ConstantOrigin {
  std::vector<SourceLocation> elements;
  bool negated = false;      ///< negated in the program: the shift of a roll
  bool equal_parts = false;  ///< the operator splits equally without explicit sizes
  /// The location specifies the length, and this constant is the start.
  ValueId start_of = parsimony::kNone;
};

/// Where the program says what the Graph says, by ids of the Graph.
struct Sources {
  std::unordered_map<ValueId, ConstantOrigin> constants;
  std::unordered_map<NodeId, std::vector<SourceLocation>> operands;
  std::unordered_map<NodeId, std::vector<std::pair<std::string, SourceLocation>>> attributes;
  std::vector<SizeLiteral> size_literals;
  std::vector<ImplicitScale> frozen;
  std::unordered_set<std::string> synthetic;  ///< weights made for omitted operands
  std::unordered_set<std::string> literals;   ///< weights that are constants of the program
  TensorMemory storage;                       ///< of constants
  Probe probe;

  SourceLocation operand(NodeId node, int input) const {
    const auto found = operands.find(node);
    const bool has = found != operands.end() && input < std::ssize(found->second);
    return has ? found->second[static_cast<size_t>(input)] : SourceLocation{};
  }
};

}  // namespace parsimony::programs
