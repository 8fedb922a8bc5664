// Gather: y[..a i ..b] = x[..a index[i] ..b]. A constant list of indices is renumbered when x
// shrinks; a single index or a computed one pins the axis (an embedding's vocabulary).
#include <algorithm>

#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

/// Indices that stay the same for every input: a literal list of one dimension.
const HostTensor* fixed_indices(const NodeView& view) {
  const HostTensor* indices = view.constant(1);
  if (indices == nullptr || view.computed(view.input(1)) || indices->dims.size() != 1 ||
      indices->floating()) {
    return nullptr;
  }
  return indices;
}

int axis_of(const NodeView& view) {
  return normal_axis(view, view.attr("axis", 0), known_shape(view, 0).size());
}

}  // namespace

Shapes infer_gather(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const Shape* indices = view.in_shape(1);
  if (x == nullptr || indices == nullptr) return Shapes(1);
  const int axis = axis_of(view);
  Shape y(x->begin(), x->begin() + axis);
  y.insert(y.end(), indices->begin(), indices->end());
  y.insert(y.end(), x->begin() + axis + 1, x->end());
  return {y};
}

Factors factor_gather(const NodeView& view) {
  FactorBuilder builder(view);
  const ValueId x = view.input(0);
  const ValueId index = view.input(1);
  const ValueId y = view.output(0);
  const int axis = axis_of(view);
  const int rank = static_cast<int>(known_shape(view, 0).size());
  const int index_rank = static_cast<int>(known_shape(view, 1).size());
  for (int d = 0; d < rank; ++d) {
    if (d != axis) builder.tie(x, d, y, d < axis ? d : d + index_rank - 1);
  }
  const int64_t size = known_shape(view, 0)[axis];
  const HostTensor* fixed = fixed_indices(view);
  if (fixed == nullptr) {
    builder.pin(x, axis, "indexed by data, or at one place");
    for (int d = 0; d < index_rank; ++d) {
      if (view.computed(index)) {
        builder.pin(y, axis + d, "gathered by computed indices");
      } else {
        builder.tie(index, d, y, axis + d);
      }
    }
    return builder.take();
  }
  std::vector<Segment> segments;
  for (size_t i = 0; i < fixed->ints.size(); ++i) {
    const int64_t at = fixed->ints[i] < 0 ? fixed->ints[i] + size : fixed->ints[i];
    segments.push_back({at, static_cast<int64_t>(i), 1});
  }
  builder.map(x, axis, y, axis, std::move(segments));
  // The list is rewritten rather than sliced.
  builder.factors().terms.push_back({index, 0, {builder.label(fixed->count())}});
  builder.factors().labels.back().pin = "a list of indices";
  return builder.take();
}

void patch_gather(PatchView& view) {
  const HostTensor* fixed = fixed_indices(view.before);
  if (fixed == nullptr) return;
  const int axis = axis_of(view.before);
  const auto* kept_x = view.kept(view.before.input(0), axis);
  const auto* kept_y = view.kept(view.before.output(0), axis);
  if (kept_x == nullptr && kept_y == nullptr) return;
  const int64_t size = known_shape(view.before, 0)[axis];
  HostTensor to = HostTensor::vector({}, fixed->dtype);
  for (int64_t i = 0; i < fixed->count(); ++i) {
    if (kept_y != nullptr && !std::ranges::binary_search(*kept_y, i)) continue;
    int64_t at = fixed->ints[i];
    if (at < 0) at += size;
    if (kept_x != nullptr) at = std::ranges::lower_bound(*kept_x, at) - kept_x->begin();
    to.ints.push_back(at);
  }
  to.dims = {to.count()};
  to.dims[0] = static_cast<int64_t>(to.ints.size());
  view.set_input(1, "indices", to);
}

/// y[..a depth ..b]: rows of the identity, one per index
Shapes infer_one_hot(const NodeView& view) {
  const Shape* indices = view.in_shape(0);
  const HostTensor* depth = view.constant(1);
  if (indices == nullptr || depth == nullptr || depth->count() != 1) return Shapes(1);
  Shape y = *indices;
  const int axis = normal_axis(view, view.attr("axis", -1), y.size() + 1);
  y.insert(y.begin() + axis, static_cast<int64_t>(depth->number(0)));
  return {y};
}

Factors factor_one_hot(const NodeView& view) {
  FactorBuilder builder(view);
  const int rank = static_cast<int>(known_shape(view, 0).size());
  const int axis = normal_axis(view, view.attr("axis", -1), static_cast<size_t>(rank) + 1);
  for (int d = 0; d < rank; ++d) {
    builder.tie(view.input(0), d, view.output(0), d < axis ? d : d + 1);
  }
  builder.pin(view.output(0), axis, "the number of classes");
  return builder.take();
}

}  // namespace parsimony::operators
