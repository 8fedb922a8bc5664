// Concat: y[begin_j + i] = x_j[i] along one axis; the other dimensions are the same everywhere.
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

/// Operands that are joined. QLinearConcat has the result's scale and zero point in front, and each
/// operand's own behind it.
std::vector<int> joined(const NodeView& view) {
  const bool quantised = view.node().op == "QLinearConcat";
  std::vector<int> operands;
  for (int i = quantised ? 2 : 0; i < view.inputs(); i += quantised ? 3 : 1) operands.push_back(i);
  return operands;
}

}  // namespace

Shapes infer_concat(const NodeView& view) {
  std::optional<Shape> y;
  for (const int i : joined(view)) {
    const Shape* x = view.in_shape(i);
    if (x == nullptr) return Shapes(1);
    if (!y) {
      y = *x;
      continue;
    }
    const auto axis = static_cast<size_t>(normal_axis(view, view.attr("axis", 1), y->size()));
    Shape expected = *y;
    if (x->size() == y->size()) expected[axis] = (*x)[axis];
    if (*x != expected) {
      throw errors::shape_mismatch(view.label(),
                                   "operand " + std::to_string(i) + " of the concatenation",
                                   to_string(expected), to_string(*x));
    }
    (*y)[axis] += (*x)[axis];
  }
  return {y};
}

Factors factor_concat(const NodeView& view) {
  FactorBuilder builder(view);
  const ValueId y = view.output(0);
  const std::vector<int> operands = joined(view);
  if (operands.empty()) throw UnsupportedError("nothing is joined");
  const Shape& first = known_shape(view, operands[0]);
  const size_t rank = first.size();
  const int axis = normal_axis(view, view.attr("axis", 1), rank);
  for (size_t d = 0; d < rank; ++d) {
    if (static_cast<int>(d) == axis) continue;
    const int label = builder.label(first[d]);
    builder.term(y, static_cast<int>(d), {{label}});
    for (const int i : operands) builder.term(view.input(i), static_cast<int>(d), {{label}});
  }
  int64_t begin = 0;
  for (const int i : operands) {
    const int64_t size = known_shape(view, i)[axis];
    builder.map(view.input(i), axis, y, axis, {{0, begin, size}});
    begin += size;
  }
  return builder.take();
}

}  // namespace parsimony::operators
