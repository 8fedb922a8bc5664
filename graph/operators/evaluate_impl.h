// The parts of `evaluate`, by subject. Functions may assume that every operand of the node is known
// and well formed, and that there are at least as many as the table in evaluate.cc requires.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/elements.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"

namespace parsimony::evaluation {

using Result = std::optional<std::vector<HostTensor>>;
using Function = Result (*)(const NodeView&);

/// Larger results are not shape arithmetic, and their sizes may come from a malicious file.
inline constexpr int64_t kMaxElements = 65'536;
inline constexpr size_t kMaxRank = 32;

/// Whether a tensor of these dimensions may be computed: no dimension is negative, rank and element
/// count are small.
bool fits(const Shape& dims);

/// `value` as an element of `dtype`; empty if it does not fit.
std::optional<int64_t> checked(DType dtype, int64_t value);

/// An all-zero tensor. `dims` must fit.
HostTensor zeros(DType dtype, const Shape& dims);

/// Strides with which a tensor of `dims` is read as one of shape `out`; 0 along broadcast
/// dimensions.
Shape broadcast_strides(const Shape& dims, const Shape& out);

/// Broadcasting as in numpy. @throws ModelError, naming `view`'s node, if the shapes contradict
/// each other.
Shape broadcast(const NodeView& view, const Shape& a, const Shape& b);

/// For each element of a tensor of shape `dims`, in order, offset + sum of index * stride.
std::vector<int64_t> positions(const Shape& dims, const Shape& strides, int64_t offset = 0);

/// Copies element `at` of `from` to element `to` of `out`; both hold integers, or both floats.
inline void put(HostTensor& out, int64_t to, const HostTensor& from, int64_t at) {
  if (out.floating()) {
    out.floats[to] = from.floats[at];
  } else {
    out.ints[to] = from.ints[at];
  }
}

/// The elements of `source` at `from`, as a tensor of shape `dims`.
HostTensor take(const HostTensor& source, const Shape& dims, const std::vector<int64_t>& from);

/// Integers of attribute `name` or operand `i`; empty if the node has neither.
/// @throws ModelError if the operand holds floating point numbers.
std::optional<std::vector<int64_t>> integers(const NodeView& view, std::string_view name, int i);

/// `axis` counted from the front. @throws ModelError if it is outside [-rank, rank).
size_t axis_of(const NodeView& view, int64_t axis, size_t rank);

/// Axes of attribute or operand `i`, counted from the front; empty if there are none.
/// @throws ModelError if one is outside the rank or named twice.
std::vector<size_t> axes_of(const NodeView& view, int i, size_t rank);

Result single(HostTensor tensor);

/// Combines two numbers. Null where the operator has no such form; no value where the operands have
/// no result.
struct BinaryOperator {
  std::string_view op;
  std::optional<int64_t> (*ints)(int64_t, int64_t);
  std::optional<double> (*floats)(double, double);
};
/// "Mod, fmod" is Mod with the sign of the dividend.
const BinaryOperator& binary_operator(std::string_view op);

// evaluate_arithmetic.cc: element by element, and along axes
Result unary(const NodeView& view);
Result binary(const NodeView& view);
Result variadic(const NodeView& view);
Result compare(const NodeView& view);
Result where(const NodeView& view);
Result reduce(const NodeView& view);
Result cum_sum(const NodeView& view);

// evaluate_layout.cc: tensors from shapes and numbers, elements in another shape or order
Result shape(const NodeView& view);
Result size(const NodeView& view);
Result cast(const NodeView& view);
Result cast_like(const NodeView& view);
Result constant_of_shape(const NodeView& view);
Result range(const NodeView& view);
Result identity(const NodeView& view);
Result reshape(const NodeView& view);
Result flatten(const NodeView& view);
Result squeeze(const NodeView& view);
Result unsqueeze(const NodeView& view);
Result transpose(const NodeView& view);
Result expand(const NodeView& view);
Result tile(const NodeView& view);

// evaluate_index.cc: parts of tensors, and elements by index
Result concat(const NodeView& view);
Result slice(const NodeView& view);
Result split(const NodeView& view);
Result split_to_list(const NodeView& view);
Result element_of_list(const NodeView& view);
Result gather(const NodeView& view);
Result gather_elements(const NodeView& view);
Result scatter_elements(const NodeView& view);
Result scatter_nd(const NodeView& view);
Result non_zero(const NodeView& view);

}  // namespace parsimony::evaluation
