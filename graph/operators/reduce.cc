// Operators that treat some axes as a whole and pass the rest on.
#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {

// Reduce*, ArgMax, ArgMin, TopK and others that treat some axes apart and pass the rest on.
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

/// How many places are chosen along the axis; empty if data tell.
std::optional<int64_t> count_of_chosen(const NodeView& view) {
  if (schema_of(view.node()).chosen == 0) return 1;
  if (!view.has_input(1)) return view.attr("k", 1);
  const HostTensor* k = view.constant(1);
  if (k == nullptr || view.computed(view.input(1)) || k->ints.size() != 1) return std::nullopt;
  return k->ints[0];
}

/// Chosen by scores, and read by nothing but what selects by them?
bool is_chosen_among(const NodeView& view, int64_t length) {
  return schema_of(view.node()).chosen >= 0 && count_of_chosen(view) && only_selects(view, length);
}

/// `fallback` is the axis where the attribute is absent.
Factors factor_along(const NodeView& view, int64_t fallback) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const int axis = normal_axis(view, view.attr("axis", fallback), x.size());
  const std::string why = view.node().op + " orders this axis";
  for (int i = 0; i < view.outputs(); ++i) {
    const Shape* y = view.out_shape(i);
    if (y == nullptr) continue;
    const bool dropped = y->size() < x.size();
    for (int d = 0; d < static_cast<int>(x.size()); ++d) {
      if (d != axis) builder.tie(view.input(0), d, view.output(i), dropped && d > axis ? d - 1 : d);
    }
    if (!dropped) builder.pin(view.output(i), axis, why);
  }
  if (is_chosen_among(view, x[axis])) {
    const int label = builder.label(x[axis], "e");
    builder.term(view.input(0), axis, {{label}});
    Label& experts = builder.factors().labels[label];
    experts.role = notation::LabelRole::kExpert;
    experts.mixes = true;
    experts.least = *count_of_chosen(view);
  } else {
    builder.pin(view.input(0), axis, why);
  }
  return builder.take();
}

}  // namespace

Factors factor_along_axis(const NodeView& view) { return factor_along(view, 0); }
Factors factor_along_last(const NodeView& view) { return factor_along(view, -1); }

// Fourier transforms: linear maps along an axis that is transformed as a whole. Real and imaginary
// parts stand along the last axis.
namespace {

constexpr int kAxisIsOperand = 20;  // of DFT, since this version

std::optional<int> axis_of_dft(const NodeView& view, size_t rank) {
  if (view.opset() < kAxisIsOperand) return normal_axis(view, view.attr("axis", 1), rank);
  if (!view.has_input(2)) return normal_axis(view, -2, rank);
  const HostTensor* axis = view.constant(2);
  if (axis == nullptr || axis->ints.size() != 1) return std::nullopt;
  return normal_axis(view, axis->ints[0], rank);
}

}  // namespace

/// Real and imaginary parts stand along the last axis.
Shapes infer_dft(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const HostTensor* length = view.constant(1);
  if (x == nullptr || x->size() < 2 || (view.has_input(1) && length == nullptr)) return Shapes(1);
  const auto axis = axis_of_dft(view, x->size());
  if (!axis) return Shapes(1);
  Shape y = *x;
  if (length != nullptr && length->ints.size() == 1) y[*axis] = length->ints[0];
  const bool onesided = view.attr("onesided", 0) != 0;
  const bool inverse = view.attr("inverse", 0) != 0;
  if (onesided && !inverse) y[*axis] = y[*axis] / 2 + 1;
  y.back() = onesided && inverse ? 1 : 2;
  return {y};
}

Factors factor_dft(const NodeView& view) {
  const size_t rank = known_shape(view, 0).size();
  const auto axis = axis_of_dft(view, rank);
  if (!axis) throw UnsupportedError("the axis is computed from data");
  return factor_along_axes(view, {*axis, -1}, "a transform of the whole axis");
}

/// Frames of a signal [n, length(, 1 or 2)]: [n, frames, frequencies, 2]
Shapes infer_stft(const NodeView& view) {
  const Shape* signal = view.in_shape(0);
  const HostTensor* step = view.constant(1);
  const HostTensor* length = view.constant(3);
  const Shape* window = view.in_shape(2);
  const auto is_one = [](const HostTensor* tensor) {
    return tensor != nullptr && tensor->ints.size() == 1;
  };
  if (signal == nullptr || signal->size() < 2 || !is_one(step)) return Shapes(1);
  if (length != nullptr && !is_one(length)) return Shapes(1);
  if (length == nullptr && (view.has_input(3) || window == nullptr || window->size() != 1)) {
    return Shapes(1);
  }
  const int64_t frame = length != nullptr ? length->ints[0] : (*window)[0];
  if (step->ints[0] <= 0 || frame <= 0 || frame > (*signal)[1]) return Shapes(1);
  const int64_t frames = ((*signal)[1] - frame) / step->ints[0] + 1;
  const bool onesided = view.attr("onesided", 1) != 0;
  return {Shape{(*signal)[0], frames, onesided ? frame / 2 + 1 : frame, 2}};
}

}  // namespace parsimony::operators
