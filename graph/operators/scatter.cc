// Operators that keep a shape but treat some of its axes by position: what they write to or order
// may not shrink, the other axes pass.
#include <algorithm>
#include <initializer_list>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

constexpr const char* kChosen = "indexed by data";

/// How many dimensions of x an index of GatherND names, with those of the batch before them.
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
