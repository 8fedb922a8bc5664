#include <algorithm>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/evaluate_impl.h"

namespace parsimony::evaluation {
namespace {

/// Folds element i of `from` into element to[i] of `out`; false on overflow.
template <typename Number>
bool fold(std::optional<Number> (*combine)(Number, Number), const std::vector<Number>& from,
          const std::vector<int64_t>& to, std::vector<Number>& out) {
  std::vector<bool> met(out.size(), false);
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t at = to[i];
    const auto next = met[at] ? combine(out[at], from[i]) : std::optional(from[i]);
    if (!next) return false;
    out[at] = *next;
    met[at] = true;
  }
  return true;
}

/// The result's dimensions with the reduced ones as 1.
Shape reduced_dims(const NodeView& view, const Shape& from) {
  const std::vector<size_t> axes = axes_of(view, 1, from.size());
  if (axes.empty()) return Shape(from.size(), 1);
  Shape dims = from;
  for (const size_t axis : axes) dims[axis] = 1;
  return dims;
}

Shape squeezed(const NodeView& view, const Shape& from) {
  const std::vector<size_t> axes = axes_of(view, 1, from.size());
  Shape dims;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool reduced = axes.empty() || contains(axes, d);
    if (!reduced) dims.push_back(from[d]);
  }
  return dims;
}

/// Rounds to the element type and, for a mean, divides; false if an integer does not fit.
bool settle(bool mean, int64_t per_element, HostTensor& out) {
  for (double& element : out.floats) {
    if (mean) element /= static_cast<double>(per_element);
    element = rounded(out.dtype, element);
  }
  for (int64_t& element : out.ints) {
    if (mean) element /= per_element;
    if (!checked(out.dtype, element)) return false;
  }
  return true;
}

}  // namespace

Result reduce(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const bool no_axes = axes_of(view, 1, data.dims.size()).empty();
  if (no_axes && view.attr("noop_with_empty_axes", 0) != 0) return single(data);
  if (data.count() == 0) return std::nullopt;

  const std::string_view what = std::string_view(view.node().op).substr(6);  // after "Reduce"
  const bool mean = what == "Mean";
  const BinaryOperator& combine = binary_operator(mean ? "Sum" : what == "Prod" ? "Mul" : what);
  const Shape dims = reduced_dims(view, data.dims);
  const auto to = positions(data.dims, broadcast_strides(dims, data.dims));
  HostTensor out = zeros(data.dtype, dims);
  const bool done = out.floating() ? fold(combine.floats, data.floats, to, out.floats)
                                   : fold(combine.ints, data.ints, to, out.ints);
  if (!done || !settle(mean, data.count() / out.count(), out)) return std::nullopt;
  if (view.attr("keepdims", 1) == 0) out.dims = squeezed(view, data.dims);
  return single(std::move(out));
}

Result cum_sum(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const HostTensor& along = *view.constant(1);
  if (along.floating() || along.count() != 1) return std::nullopt;
  const size_t axis = axis_of(view, along.ints[0], data.dims.size());
  const int64_t size = data.dims[axis];
  const int64_t stride = strides_of(data.dims)[axis];
  const bool reverse = view.attr("reverse", 0) != 0;
  const bool exclusive = view.attr("exclusive", 0) != 0;
  HostTensor out = zeros(data.dtype, data.dims);

  Shape starts = data.dims;
  starts[axis] = std::min<int64_t>(size, 1);
  for (const int64_t start : positions(starts, strides_of(data.dims))) {
    int64_t sum = 0;
    double total = 0;
    for (int64_t i = 0; i < size; ++i) {
      const size_t at = start + (reverse ? size - 1 - i : i) * stride;
      if (out.floating()) {
        const double before = total;
        total = rounded(data.dtype, total + data.floats[at]);
        out.floats[at] = exclusive ? before : total;
        continue;
      }
      const int64_t before = sum;
      const auto next = binary_operator("Add").ints(sum, data.ints[at]);
      if (!next || !checked(data.dtype, *next)) return std::nullopt;
      sum = *next;
      out.ints[at] = exclusive ? before : sum;
    }
  }
  return single(std::move(out));
}

}  // namespace parsimony::evaluation
