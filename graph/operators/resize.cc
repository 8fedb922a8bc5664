// Resize and Upsample: a dimension that keeps its size passes on, one that is resampled does not.
#include <cmath>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

// Operands: Upsample (7) has an attribute, Upsample (9) and Resize (10) x, scales; later Resize has
// x, roi, scales, sizes.
int scales_input(const NodeView& view) {
  return view.node().op == "Resize" && view.opset() >= 11 ? 2 : 1;
}

std::optional<std::vector<double>> scales_of(const NodeView& view) {
  if (const auto* list = attr_if<std::vector<double>>(view.node(), "scales")) return *list;
  const HostTensor* scales = view.constant(scales_input(view));
  if (scales == nullptr || scales->floats.empty()) return std::nullopt;
  return scales->floats;
}

/// The dimension of x that element `i` of scales or sizes is about.
size_t dim_of(const NodeView& view, size_t i, size_t rank) {
  const std::vector<int64_t> axes = view.attrs("axes");
  return static_cast<size_t>(
      normal_axis(view, i < axes.size() ? axes[i] : static_cast<int64_t>(i), rank));
}

}  // namespace

Shapes infer_resize(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr) return Shapes(1);
  Shape y = *x;
  if (const auto scales = scales_of(view)) {
    for (size_t i = 0; i < scales->size() && i < y.size(); ++i) {
      const size_t d = dim_of(view, i, y.size());
      const double size = std::floor(static_cast<double>((*x)[d]) * (*scales)[i]);
      if (!(size >= 0 && size < 1e12)) {
        throw errors::bad_attribute(view.label(), "scales", "not a sane factor");
      }
      y[d] = static_cast<int64_t>(size);
    }
    return {y};
  }
  const HostTensor* sizes = view.constant(3);
  if (sizes == nullptr) return Shapes(1);
  if (view.attr("keep_aspect_ratio_policy", "stretch") != "stretch") return Shapes(1);
  for (size_t i = 0; i < sizes->ints.size() && i < y.size(); ++i) {
    y[dim_of(view, i, y.size())] = sizes->ints[i];
  }
  return {y};
}

Factors factor_resize(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const Shape& y = *view.out_shape(0);
  for (size_t d = 0; d < x.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (x[d] == y[d]) {
      builder.tie(view.input(0), dim, view.output(0), dim);
    } else {
      builder.pin(view.input(0), dim, "resampled");
      builder.pin(view.output(0), dim, "resampled");
    }
  }
  return builder.take();
}

void patch_resize(PatchView& view) {
  const HostTensor* sizes = view.after.constant(3);
  const Shape* wanted = view.after.out_shape(0);
  if (sizes == nullptr || sizes->ints.empty() || wanted == nullptr || scales_of(view.before))
    return;
  Shape to(sizes->ints.size());
  std::vector<bool> right(to.size());
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = (*wanted)[dim_of(view.before, i, wanted->size())];
    right[i] = sizes->ints[i] == to[i];
  }
  patch_shape_operand(view, 3, "sizes", to, right);
}

}  // namespace parsimony::operators
