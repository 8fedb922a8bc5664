#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/element_type_impl.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/evaluate_impl.h"

namespace parsimony {
namespace {

using namespace evaluation;

struct Entry {
  std::string_view op;
  Function function;
  int min_inputs;
};

constexpr std::array kTable = {
    Entry{"Abs", unary, 1},
    Entry{"Add", binary, 2},
    Entry{"And", compare, 2},
    Entry{"Cast", cast, 1},
    Entry{"CastLike", cast_like, 2},
    Entry{"Ceil", unary, 1},
    Entry{"Concat", concat, 1},
    Entry{"ConstantOfShape", constant_of_shape, 1},
    Entry{"Cos", unary, 1},
    Entry{"CumSum", cum_sum, 2},
    Entry{"Div", binary, 2},
    Entry{"Equal", compare, 2},
    Entry{"Exp", unary, 1},
    Entry{"Expand", expand, 2},
    Entry{"Flatten", flatten, 1},
    Entry{"Floor", unary, 1},
    Entry{"Gather", gather, 2},
    Entry{"GatherElements", gather_elements, 2},
    Entry{"Greater", compare, 2},
    Entry{"GreaterOrEqual", compare, 2},
    Entry{"Identity", identity, 1},
    Entry{"Less", compare, 2},
    Entry{"LessOrEqual", compare, 2},
    Entry{"Log", unary, 1},
    Entry{"Max", variadic, 1},
    Entry{"Mean", variadic, 1},
    Entry{"Min", variadic, 1},
    Entry{"Mod", binary, 2},
    Entry{"Mul", binary, 2},
    Entry{"Neg", unary, 1},
    Entry{"NonZero", non_zero, 1},
    Entry{"Not", unary, 1},
    Entry{"Or", compare, 2},
    Entry{"Pow", binary, 2},
    Entry{"Range", range, 3},
    Entry{"Reciprocal", unary, 1},
    Entry{"ReduceMax", reduce, 1},
    Entry{"ReduceMean", reduce, 1},
    Entry{"ReduceMin", reduce, 1},
    Entry{"ReduceProd", reduce, 1},
    Entry{"ReduceSum", reduce, 1},
    Entry{"Reshape", reshape, 1},
    Entry{"Round", unary, 1},
    Entry{"ScatterElements", scatter_elements, 3},
    Entry{"ScatterND", scatter_nd, 3},
    Entry{"SequenceAt", element_of_list, 1},
    Entry{"Shape", shape, 1},
    Entry{"Sign", unary, 1},
    Entry{"Sin", unary, 1},
    Entry{"Size", size, 1},
    Entry{"Slice", slice, 1},
    Entry{"Split", split, 1},
    Entry{"SplitToSequence", split_to_list, 1},
    Entry{"Sqrt", unary, 1},
    Entry{"Squeeze", squeeze, 1},
    Entry{"Sub", binary, 2},
    Entry{"Sum", variadic, 1},
    Entry{"Tanh", unary, 1},
    Entry{"Tile", tile, 2},
    Entry{"Transpose", transpose, 1},
    Entry{"Unsqueeze", unsqueeze, 1},
    Entry{"Where", where, 3},
    Entry{"Xor", compare, 2},
};
static_assert(std::ranges::is_sorted(kTable, {}, &Entry::op));

const Entry* find_entry(std::string_view op) {
  const auto found = std::ranges::lower_bound(kTable, op, {}, &Entry::op);
  return found != kTable.end() && found->op == op ? &*found : nullptr;
}

bool is_known(const HostTensor* tensor) {
  return tensor != nullptr && fits(tensor->dims) && tensor->count() == element_count(tensor->dims);
}

bool reads_first_only(const Entry& entry) {
  return entry.function == cast_like || entry.function == element_of_list;
}

/// Operators that look at no element of (some of) their operands check the others themselves.
bool reads_elements(const Entry& entry) {
  return entry.function != shape && entry.function != size && !reads_first_only(entry);
}

}  // namespace

std::optional<std::vector<HostTensor>> evaluate(const NodeView& view) {
  if (!view.node().domain.empty() || view.node().has_subgraph) return std::nullopt;
  const Entry* entry = find_entry(view.node().op);
  if (entry == nullptr) return std::nullopt;
  for (int i = 0; i < std::max(view.inputs(), entry->min_inputs); ++i) {
    if (!view.has_input(i)) {
      if (i < entry->min_inputs) return std::nullopt;
      continue;
    }
    const bool needed = reads_elements(*entry) || (i == 0 && reads_first_only(*entry));
    if (needed && !is_known(view.constant(i))) return std::nullopt;
  }
  return entry->function(view);
}

}  // namespace parsimony

// Helpers shared by all of `evaluate`: checks, broadcasting and copying elements.

namespace parsimony::evaluation {

bool fits(const Shape& dims) {
  if (dims.size() > kMaxRank) return false;
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || dim > kMaxElements) return false;
    // An empty dimension counts as 1, so that no loop over the others runs long.
    count *= std::max<int64_t>(dim, 1);
    if (count > kMaxElements) return false;
  }
  return true;
}

std::optional<int64_t> checked(DType dtype, int64_t value) {
  const bool in_range = with_element_type(dtype, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      return dtype == DType::kBool ? value == 0 || value == 1 : std::in_range<T>(value);
    } else {
      return true;
    }
  });
  return in_range ? std::optional(value) : std::nullopt;
}

HostTensor zeros(DType dtype, const Shape& dims) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = dims;
  const size_t count = element_count(dims);
  if (tensor.floating()) {
    tensor.floats.resize(count);
  } else {
    tensor.ints.resize(count);
  }
  return tensor;
}

Shape broadcast_strides(const Shape& dims, const Shape& out) {
  const Shape own = dense_strides(dims);
  const size_t lead = out.size() - dims.size();
  Shape strides(out.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != 1) strides[lead + d] = own[d];
  }
  return strides;
}

Shape broadcast(const NodeView& view, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() < b.size() ? b : a;
  const Shape& shorter = a.size() < b.size() ? a : b;
  const size_t lead = longer.size() - shorter.size();
  Shape out = longer;
  for (size_t d = 0; d < shorter.size(); ++d) {
    int64_t& dim = out[lead + d];
    if (dim == shorter[d] || shorter[d] == 1) continue;
    if (dim != 1) {
      throw errors::shape_mismatch(view.label(), "operands cannot be broadcast", to_string(a),
                                   to_string(b));
    }
    dim = shorter[d];
  }
  return out;
}

std::vector<int64_t> positions(const Shape& dims, const Shape& strides, int64_t offset) {
  std::vector<int64_t> out = {offset};
  if (element_count(dims) == 0) return {};
  // Grows by one dimension at a time, from the outermost inwards.
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    std::vector<int64_t> next;
    next.reserve(out.size() * dims[d]);
    for (const int64_t base : out) {
      for (int64_t i = 0; i < dims[d]; ++i) next.push_back(base + i * strides[d]);
    }
    out = std::move(next);
  }
  return out;
}

HostTensor take(const HostTensor& source, const Shape& dims, const std::vector<int64_t>& from) {
  HostTensor tensor = zeros(source.dtype, dims);
  for (size_t i = 0; i < from.size(); ++i) put(tensor, static_cast<int64_t>(i), source, from[i]);
  return tensor;
}

std::optional<std::vector<int64_t>> integers(const NodeView& view, std::string_view name, int i) {
  const HostTensor* operand = view.constant(i);
  if (view.find(name) == nullptr && operand != nullptr && operand->floating()) {
    throw errors::bad_attribute(view.label(), name,
                                "expected integers, found " + std::string(name_of(operand->dtype)));
  }
  return view.attr_or_input(name, i);
}

size_t axis_of(const NodeView& view, int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    throw errors::bad_attribute(view.label(), "axis",
                                "expected a dimension of a tensor of rank " + std::to_string(rank) +
                                    ", found " + std::to_string(axis));
  }
  return axis < 0 ? axis + signed_rank : axis;
}

std::vector<size_t> axes_of(const NodeView& view, int i, size_t rank) {
  std::vector<size_t> axes;
  for (const int64_t axis : integers(view, "axes", i).value_or(std::vector<int64_t>{})) {
    const size_t found = axis_of(view, axis, rank);
    if (contains(axes, found)) {
      throw errors::bad_attribute(view.label(), "axes",
                                  "dimension " + std::to_string(axis) + " is named twice");
    }
    axes.push_back(found);
  }
  return axes;
}

Result single(HostTensor tensor) {
  std::vector<HostTensor> tensors;
  tensors.push_back(std::move(tensor));
  return tensors;
}

}  // namespace parsimony::evaluation
