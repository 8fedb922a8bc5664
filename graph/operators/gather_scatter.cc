// Operators that read or write by position.
#include <algorithm>
#include <initializer_list>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {

// Gather: y[..a i ..b] = x[..a index[i] ..b]. A constant list of indices is renumbered when x
// shrinks; a single index or a computed one pins the axis (an embedding's vocabulary).
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

// Operators that keep a shape but treat some of its axes by position: what they write to or order
// may not shrink, the other axes pass.
namespace {

constexpr const char* kChosen = "indexed by data";

/// Counts the dimensions of x that an index of GatherND names, and those of the batch before them.
std::optional<size_t> named_by_index(const NodeView& view, const Shape& x, const Shape& indices) {
  const auto rank = std::ssize(x);
  const int64_t batch = view.attr("batch_dims", 0);
  if (indices.empty() || batch < 0 || batch > rank) return std::nullopt;
  if (indices.back() < 0 || indices.back() > rank - batch) return std::nullopt;
  return static_cast<size_t>(batch + indices.back());
}

}  // namespace

Shapes infer_same(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  return {x == nullptr ? std::nullopt : std::optional(*x)};
}

Shapes infer_gather_elements(const NodeView& view) {
  const Shape* indices = view.in_shape(1);
  return {indices == nullptr ? std::nullopt : std::optional(*indices)};
}

/// y = x, but y[index[j]] = update[j]: the k dimensions that an index names are positions.
Factors factor_scatter_nd(const NodeView& view) {
  FactorBuilder builder(view);
  const size_t rank = known_shape(view, 0).size();
  const Shape& indices = known_shape(view, 1);
  const auto k = static_cast<size_t>(indices.empty() ? 0 : indices.back());
  if (indices.empty() || k > rank) throw UnsupportedError("an index does not fit the rank");
  std::vector<bool> named(rank, false);
  std::fill_n(named.begin(), k, true);
  builder.pass(named, "written at given indices");
  const size_t batch = indices.size() - 1;
  for (size_t d = k; d < rank; ++d) {
    builder.tie(view.input(0), static_cast<int>(d), view.input(2), static_cast<int>(batch + d - k));
  }
  return builder.take();
}

Factors factor_cum_sum(const NodeView& view) {
  const HostTensor* axis = view.constant(1);
  const bool known = axis != nullptr && axis->ints.size() == 1;
  const std::vector<int64_t> any = successive(0, known_shape(view, 0).size());
  return factor_along_axes(view, known ? axis->ints : any, "summed in order");
}

Factors factor_trilu(const NodeView& view) {
  FactorBuilder builder(view);
  std::vector<bool> cut(known_shape(view, 0).size(), false);
  std::fill(cut.end() - std::min<std::ptrdiff_t>(2, std::ssize(cut)), cut.end(), true);
  builder.pass(cut, "a triangle is cut out");
  return builder.take();
}

/// y = the elements of x along the axis where the condition is true
Shapes infer_compress(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const HostTensor* condition = view.constant(1);
  if (x == nullptr || (condition == nullptr && !view.may_assume())) return Shapes(1);
  const bool is_flat = view.find("axis") == nullptr;
  Shape y = is_flat ? Shape{element_count(*x)} : *x;
  int64_t& kept = y[is_flat ? 0 : normal_axis(view, view.attr("axis", 0), y.size())];
  if (condition != nullptr) kept = static_cast<int64_t>(std::ranges::count(condition->ints, 1));
  return {y};
}

Factors factor_compress(const NodeView& view) {
  if (view.find("axis") == nullptr) throw UnsupportedError("all axes are one");
  return factor_along_axes(view, {view.attr("axis", 0)}, kChosen);
}

/// The places of all elements that are not zero: any number of them.
Shapes infer_non_zero(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr || !view.may_assume()) return Shapes(1);
  return {Shape{static_cast<int64_t>(x->size()), element_count(*x)}};
}

/// The distinct slices, and how the operand is made of them.
Shapes infer_unique(const NodeView& view) {
  Shapes shapes(static_cast<size_t>(view.outputs()));
  const Shape* x = view.in_shape(0);
  if (x == nullptr || !view.may_assume()) return shapes;
  const bool is_flat = view.find("axis") == nullptr;
  const int64_t count =
      is_flat ? element_count(*x) : (*x)[normal_axis(view, view.attr("axis", 0), x->size())];
  std::ranges::fill(shapes, Shape{count});
  if (!is_flat && !shapes.empty()) shapes[0] = *x;
  return shapes;
}

/// boxes [n places 4], scores [n classes places]: any number of [image, class, place]
Shapes infer_non_max_suppression(const NodeView& view) {
  const Shape* scores = view.in_shape(1);
  if (scores == nullptr || scores->size() != 3 || !view.may_assume()) return Shapes(1);
  const HostTensor* most = view.constant(2);
  int64_t boxes = (*scores)[2];
  if (most != nullptr && most->ints.size() == 1) {
    boxes = std::clamp<int64_t>(most->ints[0], 0, boxes);
  }
  return {Shape{(*scores)[0] * (*scores)[1] * boxes, 3}};
}

Factors factor_reverse_sequence(const NodeView& view) {
  return factor_along_axes(view, {view.attr("batch_axis", 1), view.attr("time_axis", 0)},
                           "reversed up to given lengths");
}

/// A cache into which new entries are written along an axis.
Factors factor_tensor_scatter(const NodeView& view) {
  FactorBuilder builder(view);
  const size_t rank = known_shape(view, 0).size();
  const int axis = normal_axis(view, view.attr("axis", -2), rank);
  if (known_shape(view, 1).size() != rank) throw UnsupportedError("an update of another rank");
  for (int d = 0; d < static_cast<int>(rank); ++d) {
    for (const ValueId other : {view.input(1), view.output(0)}) {
      if (d == axis) {
        builder.pin(other, d, "written at given indices");
      } else {
        builder.tie(view.input(0), d, other, d);
      }
    }
  }
  builder.pin(view.input(0), axis, "written at given indices");
  return builder.take();
}

/// y[j] = x[index[j]], where an index names k dimensions behind those of the batch.
Shapes infer_gather_nd(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const Shape* indices = view.in_shape(1);
  if (x == nullptr || indices == nullptr) return Shapes(1);
  const auto named = named_by_index(view, *x, *indices);
  if (!named) return Shapes(1);
  Shape y(indices->begin(), indices->end() - 1);
  y.insert(y.end(), x->begin() + static_cast<std::ptrdiff_t>(*named), x->end());
  return {y};
}

Factors factor_gather_nd(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const Shape& indices = known_shape(view, 1);
  const auto named = named_by_index(view, x, indices);
  if (!named) throw UnsupportedError("an index does not fit the rank");
  const size_t places = indices.size() - 1;
  for (size_t d = 0; d < *named; ++d) builder.pin(view.input(0), static_cast<int>(d), kChosen);
  for (size_t d = 0; d < indices.size(); ++d) {
    builder.pin(view.input(1), static_cast<int>(d), kChosen);
    if (d < places) builder.pin(view.output(0), static_cast<int>(d), kChosen);
  }
  for (size_t d = *named; d < x.size(); ++d) {
    builder.tie(view.input(0), static_cast<int>(d), view.output(0),
                static_cast<int>(places + d - *named));
  }
  return builder.take();
}

namespace {

/// An index says where along one axis; along the others, where all are equally long, everything is
/// at its own place: in x and in `others`.
Factors factor_elements(const NodeView& view, std::initializer_list<ValueId> others) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const auto axis = static_cast<size_t>(normal_axis(view, view.attr("axis", 0), x.size()));
  const Shape& indices = known_shape(view, 1);
  if (indices.size() != x.size()) throw UnsupportedError("indices of another rank");
  for (size_t d = 0; d < x.size(); ++d) {
    if (d != axis && indices[d] > x[d]) {
      throw UnsupportedError("an index does not fit axis ", d);
    }
  }
  for (size_t d = 0; d < x.size(); ++d) {
    const int dim = static_cast<int>(d);
    const bool own_place = d != axis && indices[d] == x[d];
    if (!own_place) builder.pin(view.input(0), dim, kChosen);
    for (const ValueId other : others) {
      if (own_place) {
        builder.tie(view.input(0), dim, other, dim);
      } else {
        builder.pin(other, dim, kChosen);
      }
    }
  }
  return builder.take();
}

}  // namespace

/// y[i][c] = x[index[i][c]][c]
Factors factor_gather_elements(const NodeView& view) {
  return factor_elements(view, {view.input(1), view.output(0)});
}

/// y[index[i][c]][c] = update[i][c], elsewhere x
Factors factor_scatter_elements(const NodeView& view) {
  if (known_shape(view, 1) != known_shape(view, 2)) {
    throw UnsupportedError("an update does not fit its indices");
  }
  return factor_elements(view, {view.input(1), view.input(2), view.output(0)});
}

}  // namespace parsimony::operators
