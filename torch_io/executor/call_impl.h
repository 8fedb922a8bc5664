// One execution of one node, as seen by its kernel.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/graph.h"

namespace parsimony::executor {

using Tensors = std::vector<at::Tensor>;
using Ints = std::vector<int64_t>;

struct StoredWeight;

/// Returns the node's name, or its operator if it has none.
const std::string& label(const Node& node);
/// "node "conv1" (Conv, version 13)"
std::string described(const Node& node);
UnsupportedError cannot_run(const Node& node, std::string_view why);

class Call {
 public:
  Call(const Node& of, Tensors operands) : node(of), inputs(std::move(operands)) {}

  const Node& node;
  Tensors inputs;  ///< undefined for an absent optional operand
  /// Masked execution: which elements of an operand are present in the small network, boolean, of
  /// the operand's shape; undefined if all are.
  mutable Tensors present;
  /// Operands that are weights with absent parts. Their presence has the weight's size, so it is
  /// computed on demand.
  std::vector<const StoredWeight*> weights;
  /// Types of the operands in the file; tensors may store them as another type. May be shorter.
  std::span<const DType> types;
  bool training = false;
  bool mixes = false;   ///< masked execution: absent channels may change other results
  bool widens = false;  ///< float16 is computed as float32: see GraphModule::widen_halves

  int opset() const { return node.opset; }
  size_t outputs() const { return node.outputs.size(); }

  const at::Tensor& in(size_t i) const { return at_or_none(inputs, i); }
  bool has_in(size_t i) const { return in(i).defined(); }
  const at::Tensor& presence(size_t i) const;
  const StoredWeight* weight(size_t i) const { return i < weights.size() ? weights[i] : nullptr; }
  /// Returns the presence as 0 and 1 in the operand's shape.
  at::Tensor presence_numbers(size_t i) const;
  /// Returns the operand with absent elements replaced by `value`.
  at::Tensor filled(size_t i, double value) const;

  bool has(std::string_view attribute) const { return find(attribute) != nullptr; }
  int64_t integer(std::string_view attribute, int64_t fallback) const;
  double real(std::string_view attribute, double fallback) const;
  std::string text(std::string_view attribute, std::string fallback) const;
  Ints integers(std::string_view attribute, Ints fallback = {}) const;
  std::vector<double> reals(std::string_view attribute) const;
  std::vector<std::string> texts(std::string_view attribute) const;

  /// Returns the elements of a small operand, whatever its type.
  Ints ints_in(size_t i) const;
  std::vector<double> numbers_in(size_t i) const;
  double number_in(size_t i, double fallback) const;
  /// Returns the operand if present, else the attribute, for attributes that newer opsets turned
  /// into operands.
  Ints ints(size_t input, std::string_view attribute) const;

  /// Returns kUnknown if neither the file nor the tensor specifies it.
  DType type_in(size_t i) const;

  /// Returns the same call with other operands, all of them present.
  Call on(Tensors operands) const {
    Call call(node, std::move(operands));
    call.widens = widens;
    return call;
  }

  /// Returns the type in which results of this type are stored.
  at::ScalarType stored_type(at::ScalarType type) const;

  /// @throws UnsupportedError naming the node
  [[noreturn]] void unsupported(std::string_view what) const;

 private:
  static const at::Tensor& at_or_none(const Tensors& tensors, size_t i);
  const Attribute* find(std::string_view attribute) const;
};

/// Returns a tensor of these sizes without memory.
at::Tensor of_sizes(const Ints& dims);

/// Returns the intersection; undefined means all present.
at::Tensor both(const at::Tensor& a, const at::Tensor& b);

/// Whether it is a 16-bit float, for which the CPU has few kernels.
bool is_half(const at::Tensor& tensor);

/// Returns 0 ≤ axis < rank, counted from the end if negative. @throws c10::Error
int64_t wrapped(int64_t axis, int64_t rank);
Ints wrapped(Ints axes, int64_t rank);

/// Returns a view of shape [1, …, n, …, 1] that broadcasts along `axis`.
at::Tensor along(const at::Tensor& vector, int64_t axis, int64_t rank);

/// Returns the element type with this number in ONNX. @throws UnsupportedError
at::ScalarType type_of_code(const Call& call, int64_t code);
/// Returns the type of this name, such as "float32". @throws UnsupportedError
at::ScalarType type_of_name(const Call& call, std::string_view name);

inline int64_t index(size_t i) { return static_cast<int64_t>(i); }

}  // namespace parsimony::executor
