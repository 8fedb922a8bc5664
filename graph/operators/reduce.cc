// Reduce*, ArgMax, ArgMin, TopK and others that treat some axes apart and pass the rest on.
#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

/// Marks the reduced axes; empty if they are computed from data.
std::optional<std::vector<bool>> reduced(const NodeView& view, size_t rank) {
  const auto axes = view.attr_or_input("axes", 1);
  if (!axes && view.has_input(1)) return std::nullopt;
  if (!axes || axes->empty()) {
    return std::vector<bool>(rank, view.attr("noop_with_empty_axes", 0) == 0);
  }
  std::vector<bool> result(rank, false);
  for (const int64_t axis : *axes) result[normal_axis(view, axis, rank)] = true;
  return result;
}

Factors factor_reduce(const NodeView& view, bool mixes) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const auto axes = reduced(view, x.size());
  if (!axes) throw UnsupportedError("the axes are computed from data");
  const bool keep = view.attr("keepdims", 1) != 0;
  int out = 0;
  for (size_t d = 0; d < x.size(); ++d) {
    const int label = builder.label(x[d]);
    builder.term(view.input(0), static_cast<int>(d), {{label}});
    if ((*axes)[d]) {
      builder.factors().labels.back().contracted = true;
      builder.factors().labels.back().mixes = mixes;
      out += keep ? 1 : 0;
    } else {
      builder.term(view.output(0), out++, {{label}});
    }
  }
  return builder.take();
}

}  // namespace

Shapes infer_reduce(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr) return Shapes(1);
  const auto axes = reduced(view, x->size());
  if (!axes) return Shapes(1);
  const bool keep = view.attr("keepdims", 1) != 0;
  Shape y;
  for (size_t d = 0; d < x->size(); ++d) {
    if (!(*axes)[d]) {
      y.push_back((*x)[d]);
    } else if (keep) {
      y.push_back(1);
    }
  }
  return {y};
}

Factors factor_sum(const NodeView& view) { return factor_reduce(view, false); }
Factors factor_mean(const NodeView& view) { return factor_reduce(view, true); }

/// (x - mean) / deviation over the axes
Factors factor_mean_variance(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  std::vector<int64_t> axes = view.attrs("axes");
  if (view.find("axes") == nullptr) axes = {0, 2, 3};
  for (size_t d = 0; d < x.size(); ++d) {
    const int label = builder.label(x[d]);
    builder.factors().labels.back().mixes = std::ranges::any_of(axes, [&](int64_t axis) {
      return normal_axis(view, axis, x.size()) == static_cast<int>(d);
    });
    builder.term(view.input(0), static_cast<int>(d), {{label}});
    builder.term(view.output(0), static_cast<int>(d), {{label}});
  }
  return builder.take();
}

Shapes infer_arg(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr) return Shapes(1);
  const int axis = normal_axis(view, view.attr("axis", 0), x->size());
  Shape y = *x;
  if (view.attr("keepdims", 1) != 0) {
    y[axis] = 1;
  } else {
    y.erase(y.begin() + axis);
  }
  return {y};
}

Shapes infer_top_k(const NodeView& view) {
  Shapes shapes(static_cast<size_t>(view.outputs()));
  const Shape* x = view.in_shape(0);
  const HostTensor* k = view.constant(1);
  const bool is_computed = k == nullptr && view.find("k") == nullptr;
  if (x == nullptr || (is_computed && !view.may_assume())) return shapes;
  Shape y = *x;
  int64_t& kept = y[normal_axis(view, view.attr("axis", -1), x->size())];
  if (!is_computed) kept = k != nullptr && k->ints.size() == 1 ? k->ints[0] : view.attr("k", 1);
  std::ranges::fill(shapes, y);
  return shapes;
}

namespace {

/// `fallback` is the axis where the attribute is absent.
Factors factor_along(const NodeView& view, int64_t fallback) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const int axis = normal_axis(view, view.attr("axis", fallback), x.size());
  for (int i = 0; i < view.outputs(); ++i) {
    const Shape* y = view.out_shape(i);
    if (y == nullptr) continue;
    const bool dropped = y->size() < x.size();
    for (int d = 0; d < static_cast<int>(x.size()); ++d) {
      if (d != axis) builder.tie(view.input(0), d, view.output(i), dropped && d > axis ? d - 1 : d);
    }
    if (!dropped) builder.pin(view.output(i), axis, view.node().op + " orders this axis");
  }
  builder.pin(view.input(0), axis, view.node().op + " orders this axis");
  return builder.take();
}

}  // namespace

Factors factor_along_axis(const NodeView& view) { return factor_along(view, 0); }
Factors factor_along_last(const NodeView& view) { return factor_along(view, -1); }

}  // namespace parsimony::operators
