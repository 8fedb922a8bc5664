// Split: y_j[i] = x[begin_j + i] along one axis. Equal parts may become unequal, so a pruned Split
// always names its sizes.
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

std::vector<int64_t> sizes_of(const NodeView& view, int64_t total) {
  if (const auto sizes = view.attr_or_input("split", 1); sizes && !sizes->empty()) return *sizes;
  const auto parts = static_cast<int64_t>(view.outputs());
  if (view.opset() < 18 && total % parts != 0) {  // since then the last part may be smaller
    throw errors::shape_mismatch(view.label(), "size to split",
                                 "a multiple of " + std::to_string(parts), std::to_string(total));
  }
  const int64_t size = (total + parts - 1) / parts;
  std::vector<int64_t> sizes(static_cast<size_t>(parts), size);
  sizes.back() = total - size * (parts - 1);
  return sizes;
}

}  // namespace

Shapes infer_split(const NodeView& view) {
  Shapes shapes(static_cast<size_t>(view.outputs()));
  const Shape* x = view.in_shape(0);
  if (x == nullptr || (view.has_input(1) && view.constant(1) == nullptr)) return shapes;
  const auto axis = static_cast<size_t>(normal_axis(view, view.attr("axis", 0), x->size()));
  const std::vector<int64_t> sizes = sizes_of(view, (*x)[axis]);
  int64_t sum = 0;
  for (const int64_t size : sizes) sum += size;
  if (sizes.size() != shapes.size() || sum != (*x)[axis]) {
    throw errors::shape_mismatch(view.label(), "sum of the parts", std::to_string((*x)[axis]),
                                 std::to_string(sum));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    shapes[i] = *x;
    (*shapes[i])[axis] = sizes[i];
  }
  return shapes;
}

Factors factor_split(const NodeView& view) {
  FactorBuilder builder(view);
  const ValueId x = view.input(0);
  const Shape& shape = known_shape(view, 0);
  const int axis = normal_axis(view, view.attr("axis", 0), shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int>(d) == axis) continue;
    const int label = builder.label(shape[d]);
    builder.term(x, static_cast<int>(d), {{label}});
    for (int i = 0; i < view.outputs(); ++i) {
      if (view.output(i) != kNone) builder.term(view.output(i), static_cast<int>(d), {{label}});
    }
  }
  const std::vector<int64_t> sizes = sizes_of(view, shape[axis]);
  int64_t begin = 0;
  for (int i = 0; i < view.outputs(); ++i) {
    const int64_t size = sizes[i];
    if (view.output(i) != kNone) builder.map(x, axis, view.output(i), axis, {{begin, 0, size}});
    begin += size;
  }
  return builder.take();
}

void patch_split(PatchView& view) {
  const Shape& before = known_shape(view.before, 0);
  const Shape& after = known_shape(view.after, 0);
  const auto axis =
      static_cast<size_t>(normal_axis(view.before, view.before.attr("axis", 0), before.size()));
  // Sizes that are computed may shrink where the axis does not.
  const bool computed = view.before.has_input(1) && view.before.computed(view.before.input(1));
  if (before[axis] == after[axis] && !computed) return;
  std::vector<int64_t> sizes;
  for (int i = 0; i < view.after.outputs(); ++i) {
    if (view.after.out_shape(i) == nullptr)
      throw UnsupportedError("a part of the split is not read");
    sizes.push_back((*view.after.out_shape(i))[axis]);
  }
  if (view.before.opset() < 13) {
    view.set_attribute("split", view.before.attrs("split"), sizes);
    return;
  }
  view.set_attr_or_input("split", 1, sizes);
  if (view.before.find("num_outputs") != nullptr) {  // opset 18 wants one or the other
    view.set_attribute("num_outputs", {view.before.attr("num_outputs", 0)}, {});
  }
}

}  // namespace parsimony::operators
