// Expand, ConstantOfShape, Tile: elements that repeat. A dimension that is filled by repeating may
// shrink like any other; the operand that names its size follows.
#include <algorithm>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

Shape broadcast(const NodeView& view, const Shape& x, const std::vector<int64_t>& asked) {
  Shape y(std::max(x.size(), asked.size()), 1);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t a = i < x.size() ? x[x.size() - 1 - i] : 1;
    const int64_t b = i < asked.size() ? asked[asked.size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1) {
      throw errors::shape_mismatch(view.label(), "expanded dimension", std::to_string(a),
                                   std::to_string(b));
    }
    y[y.size() - 1 - i] = a == 1 ? b : a;
  }
  return y;
}

}  // namespace

Shapes infer_expand(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const HostTensor* asked = view.constant(1);
  if (x == nullptr || asked == nullptr) return Shapes(1);
  return {broadcast(view, *x, asked->ints)};
}

Factors factor_expand(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const Shape& y = *view.out_shape(0);
  const size_t more = y.size() - x.size();
  for (size_t d = 0; d < y.size(); ++d) {
    if (d >= more && x[d - more] == y[d]) {
      builder.tie(view.input(0), static_cast<int>(d - more), view.output(0), static_cast<int>(d));
    } else {
      builder.term(view.output(0), static_cast<int>(d), {{builder.label(y[d])}});
    }
  }
  return builder.take();
}

void patch_expand(PatchView& view) {
  const Shape* requested = view.after.out_shape(0);
  const Shape* x = view.after.in_shape(0);
  const HostTensor* asked = view.after.constant(1);
  if (requested == nullptr || x == nullptr || asked == nullptr) return;
  const size_t more = requested->size() - asked->ints.size();  // asked may be shorter than x
  Shape tail(requested->begin() + static_cast<std::ptrdiff_t>(more), requested->end());
  std::vector<bool> right(tail.size());
  for (size_t i = 0; i < tail.size(); ++i) {
    const std::ptrdiff_t in_x =
        std::ssize(*x) - (std::ssize(tail) - static_cast<std::ptrdiff_t>(i));
    const bool carried = in_x >= 0 && (*x)[in_x] == tail[i];
    right[i] = asked->ints[i] == tail[i] || (asked->ints[i] == 1 && carried);
  }
  patch_shape_operand(view, 1, "shape", tail, right);
}

Shapes infer_constant_of_shape(const NodeView& view) {
  const HostTensor* asked = view.constant(0);
  if (asked == nullptr) return Shapes(1);
  return {asked->ints};
}

Factors factor_constant_of_shape(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& y = *view.out_shape(0);
  for (size_t d = 0; d < y.size(); ++d) {
    builder.term(view.output(0), static_cast<int>(d), {{builder.label(y[d])}});
  }
  return builder.take();
}

void patch_constant_of_shape(PatchView& view) {
  const Shape* requested = view.after.out_shape(0);
  const HostTensor* asked = view.after.constant(0);
  if (requested == nullptr || asked == nullptr) return;
  std::vector<bool> right(requested->size());
  for (size_t i = 0; i < right.size(); ++i) right[i] = asked->ints[i] == (*requested)[i];
  patch_shape_operand(view, 0, "input", *requested, right);
}

Shapes infer_tile(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const HostTensor* repeats = view.constant(1);
  if (x == nullptr || repeats == nullptr || repeats->ints.size() != x->size()) return Shapes(1);
  Shape y = *x;
  for (size_t d = 0; d < y.size(); ++d) y[d] = element_count({y[d], repeats->ints[d]});
  element_count(y);
  return {y};
}

Factors factor_tile(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const Shape& y = *view.out_shape(0);
  for (size_t d = 0; d < x.size(); ++d) {
    if (x[d] == 0) continue;
    const int repeat = builder.label(y[d] / x[d], "repeat");
    builder.factors().labels.back().pin = "a number of repetitions";
    const int label = builder.label(x[d]);
    builder.term(view.input(0), static_cast<int>(d), {{label}});
    builder.term(view.output(0), static_cast<int>(d), {{repeat, label}});
  }
  return builder.take();
}

}  // namespace parsimony::operators
