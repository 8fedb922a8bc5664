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
// shrinks; a single index or a computed one pins the axis (an embedding's vocabulary), unless it
// was chosen along another axis.
namespace {

/// Indices that stay the same for every input: a literal list of one dimension, or one index.
const HostTensor* literal_indices(const NodeView& view) {
  const HostTensor* indices = view.constant(1);
  const bool literal = indices != nullptr && !view.computed(view.input(1)) &&
                       indices->dims.size() <= 1 && !indices->floating();
  return literal ? indices : nullptr;
}

const HostTensor* fixed_indices(const NodeView& view) {
  const HostTensor* indices = literal_indices(view);
  return indices == nullptr || indices->dims.empty() ? nullptr : indices;
}

int64_t from_left(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

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

namespace {

/// Does a literal name every index of the axis in order? The operand then gets the literal's shape.
bool takes_all_in_order(const NodeView& view) {
  const HostTensor* indices = view.constant(1);
  const Shape* x = view.in_shape(0);
  if (indices == nullptr || view.computed(view.input(1)) || indices->floating()) return false;
  if (x == nullptr || x->size() != 1 || indices->dims.size() < 2) return false;
  if (indices->count() != x->front()) return false;
  for (int64_t i = 0; i < indices->count(); ++i) {
    if (indices->ints[i] != i) return false;
  }
  return true;
}

Factors factor_gather_in_order(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& shape = known_shape(view, 1);
  std::vector<int> labels;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto dim = static_cast<int>(d);
    labels.push_back(builder.label(shape[d]));
    builder.term(view.output(0), dim, {{labels.back()}});
    // The list is rewritten rather than sliced.
    const int own = builder.label(shape[d]);
    builder.factors().labels.back().pin = "a list of indices";
    builder.term(view.input(1), dim, {{own}});
  }
  builder.term(view.input(0), 0, labels);
  return builder.take();
}

}  // namespace

Factors factor_gather(const NodeView& view) {
  if (takes_all_in_order(view)) return factor_gather_in_order(view);
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
    if (!tie_to_chosen(builder, view, x, axis)) {
      builder.pin(x, axis, "indexed by data, or at one place");
      const HostTensor* one = literal_indices(view);
      const int64_t at = one == nullptr ? -1 : from_left(one->ints.front(), size);
      if (size > 1 && at >= 0 && at < size) builder.factors().pins.back().read = at;
    }
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
    segments.push_back({from_left(fixed->ints[i], size), static_cast<int64_t>(i), 1});
  }
  builder.map(x, axis, y, axis, std::move(segments));
  // The list is rewritten rather than sliced.
  builder.factors().terms.push_back({index, 0, {builder.label(fixed->count())}});
  builder.factors().labels.back().pin = "a list of indices";
  return builder.take();
}

void patch_gather(PatchView& view) {
  if (takes_all_in_order(view.before)) {
    const Shape& shape = *view.after.out_shape(0);
    if (shape == *view.before.out_shape(0)) return;
    HostTensor all =
        HostTensor::vector(successive(0, element_count(shape)), view.before.constant(1)->dtype);
    all.dims = shape;
    return view.set_input(1, "indices", all);
  }
  const HostTensor* fixed = literal_indices(view.before);
  if (fixed == nullptr) return;
  const bool is_list = !fixed->dims.empty();
  const int axis = axis_of(view.before);
  const auto* kept_x = view.kept(view.before.input(0), axis);
  const auto* kept_y = is_list ? view.kept(view.before.output(0), axis) : nullptr;
  if (kept_x == nullptr && kept_y == nullptr) return;
  const int64_t size = known_shape(view.before, 0)[axis];
  HostTensor to = HostTensor::vector({}, fixed->dtype);
  for (int64_t i = 0; i < fixed->count(); ++i) {
    if (kept_y != nullptr && !std::ranges::binary_search(*kept_y, i)) continue;
    int64_t at = from_left(fixed->ints[i], size);
    if (kept_x != nullptr) at = std::ranges::lower_bound(*kept_x, at) - kept_x->begin();
    to.ints.push_back(at);
  }
  to.dims.clear();
  if (is_list) to.dims.push_back(std::ssize(to.ints));
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
  const HostTensor* depth = view.constant(1);
  const bool fixed = depth != nullptr && !view.computed(view.input(1)) && !depth->floating();
  if (!fixed || !tie_to_chosen(builder, view, view.output(0), axis)) {
    builder.pin(view.output(0), axis, "the number of classes");
  }
  return builder.take();
}

void patch_one_hot(PatchView& view) {
  const int axis = normal_axis(view.before, view.before.attr("axis", -1),
                               known_shape(view.before, 0).size() + 1);
  const auto* kept = view.kept(view.before.output(0), axis);
  if (kept == nullptr) return;
  HostTensor depth = *view.before.constant(1);
  depth.ints.assign(1, std::ssize(*kept));
  view.set_input(1, "depth", depth);
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

/// The second operand has a type to tell, not axes.
Factors factor_cast_like(const NodeView& view) {
  FactorBuilder builder(view);
  builder.pass(std::vector<bool>(known_shape(view, 0).size(), false), "");
  const Shape& like = known_shape(view, 1);
  for (size_t d = 0; d < like.size(); ++d) {
    builder.term(view.input(1), static_cast<int>(d), {{builder.label(like[d])}});
  }
  return builder.take();
}

Shapes infer_gather_elements(const NodeView& view) {
  const Shape* indices = view.in_shape(1);
  return {indices == nullptr ? std::nullopt : std::optional(*indices)};
}

namespace {

/// Where a literal writes if it gives each axis that it names its places apart from those of the
/// others, as a grid of slices does: at [i, j, …] of the update is [places[0][i], places[1][j], …]
/// of the result. Empty if it does not, or is computed.
std::vector<std::vector<int64_t>> grid_of(const NodeView& view, const Shape& x) {
  const HostTensor* indices = view.constant(1);
  if (indices == nullptr || view.computed(view.input(1)) || indices->floating()) return {};
  const Shape& dims = indices->dims;
  if (dims.empty() || indices->count() == 0 || dims.back() > std::ssize(x)) return {};
  const auto rank = static_cast<size_t>(dims.back());
  if (dims.size() != rank + 1) return {};
  std::vector<std::vector<int64_t>> places;
  for (const int64_t size : Shape(dims.begin(), dims.end() - 1)) places.emplace_back(size, -1);
  std::vector<int64_t> at(rank, 0);
  for (auto place = indices->ints.begin(); place != indices->ints.end();) {
    for (size_t d = 0; d < rank; ++d, ++place) {
      const int64_t index = *place < 0 ? *place + x[d] : *place;
      int64_t& known = places[d][at[d]];
      if (index < 0 || index >= x[d] || (known >= 0 && known != index)) return {};
      known = index;
    }
    for (size_t d = rank; d-- > 0 && ++at[d] == dims[d];) at[d] = 0;
  }
  const auto twice = [](std::vector<int64_t> list) {
    std::ranges::sort(list);
    return std::ranges::adjacent_find(list) != list.end();
  };
  if (std::ranges::any_of(places, twice)) return {};
  return places;
}

Factors factor_scattered_grid(const NodeView& view,
                              const std::vector<std::vector<int64_t>>& places) {
  FactorBuilder builder(view);
  const ValueId indices = view.input(1);
  for (size_t d = 0; d < places.size(); ++d) {
    const int dim = static_cast<int>(d);
    builder.tie(view.input(0), dim, view.output(0), dim);
    std::vector<Segment> segments;
    for (size_t i = 0; i < places[d].size(); ++i) {
      segments.push_back({static_cast<int64_t>(i), places[d][i], 1});
    }
    builder.map(view.input(2), dim, view.output(0), dim, std::move(segments));
  }
  for (size_t d = places.size(); d < known_shape(view, 0).size(); ++d) {
    const int label = builder.label(known_shape(view, 0)[d]);
    for (const ValueId value : {view.input(0), view.input(2), view.output(0)}) {
      builder.term(value, static_cast<int>(d), {{label}});
    }
  }
  // The list is rewritten rather than sliced.
  for (size_t d = 0; d <= places.size(); ++d) {
    const int label = builder.label(known_shape(view, 1)[d]);
    builder.factors().labels.back().pin = "a list of indices";
    builder.term(indices, static_cast<int>(d), {{label}});
  }
  return builder.take();
}

}  // namespace

/// y = x, but y[index[j]] = update[j]: the k dimensions that an index names are positions.
Factors factor_scatter_nd(const NodeView& view) {
  FactorBuilder builder(view);
  const size_t rank = known_shape(view, 0).size();
  const Shape& indices = known_shape(view, 1);
  const auto k = static_cast<size_t>(indices.empty() ? 0 : indices.back());
  if (indices.empty() || k > rank) throw UnsupportedError("an index does not fit the rank");
  const auto grid = grid_of(view, known_shape(view, 0));
  if (!grid.empty()) return factor_scattered_grid(view, grid);
  std::vector<bool> named(rank, false);
  std::fill_n(named.begin(), k, true);
  builder.pass(named, "written at given indices");
  const size_t batch = indices.size() - 1;
  for (size_t d = k; d < rank; ++d) {
    builder.tie(view.input(0), static_cast<int>(d), view.input(2), static_cast<int>(batch + d - k));
  }
  return builder.take();
}

/// Kept places of a grid, counted among those that the result keeps.
void patch_scatter_nd(PatchView& view) {
  const auto places = grid_of(view.before, known_shape(view.before, 0));
  std::vector<std::vector<int64_t>> left;
  bool changed = false;
  for (size_t d = 0; d < places.size(); ++d) {
    const int dim = static_cast<int>(d);
    const auto* kept_y = view.kept(view.before.output(0), dim);
    const auto* kept_update = view.kept(view.before.input(2), dim);
    changed = changed || kept_y != nullptr || kept_update != nullptr;
    std::vector<int64_t>& here = left.emplace_back();
    for (size_t i = 0; i < places[d].size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (kept_update != nullptr && !std::ranges::binary_search(*kept_update, at)) continue;
      const int64_t place = places[d][i];
      here.push_back(
          kept_y == nullptr ? place : std::ranges::lower_bound(*kept_y, place) - kept_y->begin());
    }
  }
  if (!changed) return;
  HostTensor to = HostTensor::vector({}, view.before.constant(1)->dtype);
  to.dims.clear();
  for (const auto& here : left) to.dims.push_back(std::ssize(here));
  to.dims.push_back(std::ssize(left));
  std::vector<size_t> at(left.size(), 0);
  const int64_t count = element_count(to.dims);
  while (std::ssize(to.ints) < count) {
    for (size_t d = 0; d < left.size(); ++d) to.ints.push_back(left[d][at[d]]);
    for (size_t d = left.size(); d-- > 0 && ++at[d] == left[d].size();) at[d] = 0;
  }
  view.set_input(1, "indices", to);
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
/// at its own place: in x and in `others`, of which `whole` has all of x's axis.
Factors factor_elements(const NodeView& view, std::initializer_list<ValueId> others,
                        ValueId whole = kNone) {
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
    const bool chosen = d == axis && tie_to_chosen(builder, view, view.input(0), dim);
    if (!own_place && !chosen) builder.pin(view.input(0), dim, kChosen);
    for (const ValueId other : others) {
      if (own_place || (chosen && other == whole)) {
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
  return factor_elements(view, {view.input(1), view.input(2), view.output(0)}, view.output(0));
}

}  // namespace parsimony::operators
