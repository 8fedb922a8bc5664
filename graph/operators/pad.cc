// Pad: y[before + i] = x[i]; negative pads crop. The padded indices hold a constant and can be
// removed like others.
#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

// No tensor is longer.
constexpr int64_t kMost = int64_t{1} << 48;

/// Per dimension: how much is put before and after.
struct Pads {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
};

/// The axes that the operands name; all of them where there is no operand for it.
std::optional<std::vector<int>> padded_axes(const NodeView& view, size_t rank) {
  std::vector<int> axes;
  if (!view.has_input(3)) {
    for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int>(d));
    return axes;
  }
  if (view.constant(3) == nullptr) return std::nullopt;
  for (const int64_t axis : view.constant(3)->ints) axes.push_back(normal_axis(view, axis, rank));
  return axes;
}

std::optional<Pads> pads_of(const NodeView& view, size_t rank) {
  const auto list = view.attr_or_input("pads", 1);
  const auto axes = padded_axes(view, rank);
  if (!list || !axes) return std::nullopt;
  if (list->size() != 2 * axes->size()) {
    throw errors::bad_attribute(view.label(), "pads",
                                "wanted " + std::to_string(2 * axes->size()) + " numbers, found " +
                                    std::to_string(list->size()));
  }
  for (const int64_t pad : *list) {
    if (pad >= -kMost && pad <= kMost) continue;
    throw errors::bad_attribute(view.label(), "pads",
                                std::to_string(pad) + " is more than any tensor has");
  }
  Pads pads{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 0)};
  for (size_t i = 0; i < axes->size(); ++i) {
    pads.before[(*axes)[i]] = (*list)[i];
    pads.after[(*axes)[i]] = (*list)[i + axes->size()];
  }
  return pads;
}

}  // namespace

/// Cut or filled about the middle of each axis, to given sizes.
Shapes infer_center_crop_pad(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const HostTensor* sizes = view.constant(1);
  if (x == nullptr || sizes == nullptr) return Shapes(1);
  std::vector<int64_t> axes = view.attrs("axes");
  if (view.find("axes") == nullptr) axes = successive(0, x->size());
  if (axes.size() != sizes->ints.size()) return Shapes(1);
  Shape y = *x;
  for (size_t i = 0; i < axes.size(); ++i) {
    y[normal_axis(view, axes[i], y.size())] = sizes->ints[i];
  }
  return {y};
}

/// Axes that keep their size keep their elements.
Factors factor_center_crop_pad(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const Shape* y = view.out_shape(0);
  if (y == nullptr || y->size() != x.size()) throw UnsupportedError("the size is not known");
  std::vector<bool> resized;
  for (size_t d = 0; d < x.size(); ++d) resized.push_back((*y)[d] != x[d]);
  builder.pass(resized, "cropped about its middle");
  return builder.take();
}

Shapes infer_pad(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr) return Shapes(1);
  const auto pads = pads_of(view, x->size());
  if (!pads) return Shapes(1);
  Shape y = *x;
  for (size_t d = 0; d < y.size(); ++d) {
    y[d] += pads->before[d] + pads->after[d];
    if (y[d] < 0) {
      throw errors::bad_attribute(view.label(), "pads", "crops too much");
    }
  }
  return {y};
}

Factors factor_pad(const NodeView& view) {
  FactorBuilder builder(view);
  const ValueId x = view.input(0);
  const ValueId y = view.output(0);
  const Shape& shape = known_shape(view, 0);
  const auto pads = pads_of(view, shape.size());
  if (!pads) throw UnsupportedError("the pads are computed from data");
  const bool constant = view.attr("mode", "constant") == "constant";
  for (size_t d = 0; d < shape.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (pads->before[d] == 0 && pads->after[d] == 0) {
      builder.tie(x, dim, y, dim);
    } else if (constant) {
      const int64_t from = std::max<int64_t>(0, -pads->before[d]);
      const int64_t to = shape[d] - std::max<int64_t>(0, -pads->after[d]);
      builder.map(x, dim, y, dim,
                  {{from, from + pads->before[d], std::max<int64_t>(0, to - from)}});
    } else {
      builder.pin(x, dim, "padded with its own elements");
      builder.pin(y, dim, "padded with its own elements");
    }
  }
  return builder.take();
}

void patch_pad(PatchView& view) {
  const Shape& shape = known_shape(view.before, 0);
  const auto pads = pads_of(view.before, shape.size());
  const auto axes = padded_axes(view.before, shape.size());
  auto list = view.after.attr_or_input("pads", 1);
  if (!pads || !axes || !list) return;
  for (size_t i = 0; i < axes->size(); ++i) {
    const auto d = static_cast<size_t>((*axes)[i]);
    const auto* kept_x = view.kept(view.before.input(0), (*axes)[i]);
    const auto* kept_y = view.kept(view.before.output(0), (*axes)[i]);
    if (kept_x == nullptr && kept_y == nullptr) continue;
    const int64_t size_y = shape[d] + pads->before[d] + pads->after[d];
    const auto count = [](const std::vector<int64_t>* kept, int64_t from, int64_t to) -> int64_t {
      if (to <= from) return 0;
      if (kept == nullptr) return to - from;
      return std::ranges::lower_bound(*kept, to) - std::ranges::lower_bound(*kept, from);
    };
    (*list)[i] = count(kept_y, 0, pads->before[d]) - count(kept_x, 0, -pads->before[d]);
    (*list)[i + axes->size()] = count(kept_y, size_y - pads->after[d], size_y) -
                                count(kept_x, shape[d] + pads->after[d], shape[d]);
  }
  view.set_attr_or_input("pads", 1, *list);
}

}  // namespace parsimony::operators
