// Operators that shorten or lengthen axes.
#include <algorithm>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {

// Slice: y[i] = x[start + step * i] on the named axes. A step of 1 maps a run of indices; one that
// takes one of every `step` indices all along, as rotary pairs are taken apart, cuts the axis into
// (pair step), and whole pairs may go. A step of -1 over the whole axis reverses it. Any other step
// pins the dimension.
namespace {

struct SliceRange {
  int axis;
  int64_t start;  // clamped
  int64_t step;
  int64_t count;
};

/// The cuts in order of the operands; empty if an operand is not known.
std::optional<std::vector<SliceRange>> cuts_of(const NodeView& view, const Shape& x) {
  const auto starts = view.attr_or_input("starts", 1);
  const auto ends = view.attr_or_input("ends", 2);
  if (!starts || !ends || (view.has_input(3) && view.constant(3) == nullptr)) return std::nullopt;
  if (view.has_input(4) && view.constant(4) == nullptr) return std::nullopt;
  const auto axes = view.attr_or_input("axes", 3);
  const auto steps = view.attr_or_input("steps", 4);
  const size_t n = starts->size();
  if (ends->size() != n || (axes && axes->size() != n) || (steps && steps->size() != n)) {
    throw errors::bad_attribute(view.label(), "starts",
                                "starts, ends, axes and steps differ in length");
  }
  std::vector<SliceRange> cuts;
  for (size_t i = 0; i < n; ++i) {
    const int axis = normal_axis(view, axes ? (*axes)[i] : static_cast<int64_t>(i), x.size());
    const int64_t size = x[axis];
    const int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) {
      throw errors::bad_attribute(view.label(), "steps", std::to_string(step));
    }
    const auto clamp = [&](int64_t at) {
      if (at < 0) at = at < -size ? -1 : at + size;
      return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
    };
    const int64_t start = clamp((*starts)[i] < -size && step > 0 ? 0 : (*starts)[i]);
    const int64_t end = clamp((*ends)[i]);
    const int64_t span = step > 0 ? end - start : start - end;
    const int64_t stride = step > 0 ? step : -step;
    cuts.push_back({axis, start, step, span <= 0 ? 0 : (span - 1) / stride + 1});
  }
  return cuts;
}

/// Does the slice take one index of every `step` over the whole axis?
bool takes_turns(const SliceRange& cut, int64_t size) {
  return cut.step > 1 && size % cut.step == 0 && cut.start < cut.step &&
         cut.count == size / cut.step;
}

constexpr int64_t kLongestReversed = 1 << 16;  // index by index

/// Does the slice reverse the axis?
bool turns_round(const SliceRange& cut, int64_t size) {
  return cut.step == -1 && cut.count == size && size <= kLongestReversed;
}

/// From the last index to the first.
std::vector<Segment> reversed(int64_t size) {
  std::vector<Segment> segments;
  for (int64_t i = 0; i < size; ++i) segments.push_back({size - 1 - i, i, 1});
  return segments;
}

/// The axes that a slice with computed bounds cuts; empty if they are computed, too.
std::optional<std::vector<int64_t>> axes_cut_by_data(const NodeView& view, size_t rank) {
  const auto given = view.attr_or_input("axes", 3);
  std::vector<int64_t> axes;
  if (given) {
    for (const int64_t axis : *given) axes.push_back(normal_axis(view, axis, rank));
    return axes;
  }
  const Shape* starts = view.in_shape(1);
  if (view.has_input(3) || starts == nullptr || starts->size() != 1) return std::nullopt;
  for (int64_t i = 0; i < (*starts)[0]; ++i) axes.push_back(normal_axis(view, i, rank));
  return axes;
}

}  // namespace

Shapes infer_slice(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr) return Shapes(1);
  const auto cuts = cuts_of(view, *x);
  if (!cuts && view.may_assume() && axes_cut_by_data(view, x->size())) return {*x};  // all of it
  if (!cuts) return Shapes(1);
  Shape y = *x;
  for (const SliceRange& cut : *cuts) y[cut.axis] = cut.count;
  return {y};
}

Factors factor_slice(const NodeView& view) {
  FactorBuilder builder(view);
  const ValueId x = view.input(0);
  const ValueId y = view.output(0);
  const Shape& shape = known_shape(view, 0);
  const auto cuts = cuts_of(view, shape);
  if (!cuts) {
    const auto axes = axes_cut_by_data(view, shape.size());
    if (!axes) throw UnsupportedError("the axes are computed from data");
    return factor_along_axes(view, *axes, "cut where data say");
  }
  std::vector<bool> cut_here(shape.size(), false);
  for (const SliceRange& cut : *cuts) {
    if (cut.count == shape[cut.axis] && cut.step == 1) continue;
    cut_here[cut.axis] = true;
    if (cut.step == 1) {
      builder.map(x, cut.axis, y, cut.axis, {{cut.start, 0, cut.count}});
      continue;
    }
    if (turns_round(cut, shape[cut.axis])) {
      builder.map(x, cut.axis, y, cut.axis, reversed(cut.count));
      continue;
    }
    if (takes_turns(cut, shape[cut.axis])) {
      const int turn = builder.label(cut.count, "turn");
      const int step = builder.label(cut.step, "step");
      builder.factors().labels.back().pin = "sliced with step " + std::to_string(cut.step);
      builder.term(x, cut.axis, {{turn, step}});
      builder.term(y, cut.axis, {{turn}});
      continue;
    }
    const std::string reason = "sliced with step " + std::to_string(cut.step);
    builder.pin(x, cut.axis, reason);
    builder.pin(y, cut.axis, reason);
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!cut_here[d]) builder.tie(x, static_cast<int>(d), y, static_cast<int>(d));
  }
  return builder.take();
}

void patch_slice(PatchView& view) {
  const auto cuts = cuts_of(view.before, known_shape(view.before, 0));
  const auto starts = view.before.attr_or_input("starts", 1);
  const auto ends = view.before.attr_or_input("ends", 2);
  if (!cuts || !starts || !ends) return;
  std::vector<int64_t> new_starts = view.after.attr_or_input("starts", 1).value_or(*starts);
  std::vector<int64_t> new_ends = view.after.attr_or_input("ends", 2).value_or(*ends);
  for (size_t i = 0; i < cuts->size(); ++i) {
    const SliceRange& cut = (*cuts)[i];
    const auto* kept = view.kept(view.before.input(0), cut.axis);
    const int64_t size = known_shape(view.before, 0)[cut.axis];
    if (kept == nullptr) {  // nor do numbers change that were computed from another size
      new_starts[i] = (*starts)[i];
      new_ends[i] = (*ends)[i];
      continue;
    }
    // An end beyond the last index means "to the end", whatever is left.
    const bool open_end = cut.start + cut.count == size && (*ends)[i] > size;
    if (cut.count == size) {
      const int64_t left = known_shape(view.after, 0)[cut.axis];
      if (cut.step == 1 && !open_end) new_ends[i] = left;
      if (cut.step < 0 && (*starts)[i] >= 0) new_starts[i] = left - 1;
      continue;
    }
    if (takes_turns(cut, size)) {
      new_starts[i] = cut.start;  // ends beyond the axis, and those counted from it, still hold
      continue;
    }
    if (cut.step != 1) continue;
    const auto below = [&](int64_t limit) {
      return std::ranges::lower_bound(*kept, limit) - kept->begin();
    };
    new_starts[i] = below(cut.start);
    if (!open_end) new_ends[i] = below(cut.start + cut.count);
  }
  view.set_attr_or_input("starts", 1, new_starts);
  view.set_attr_or_input("ends", 2, new_ends);
}

// Pad: y[before + i] = x[i]; negative pads crop. The padded indices hold a constant and can be
// removed like others.
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
                                "expected " + std::to_string(2 * axes->size()) +
                                    " numbers, found " + std::to_string(list->size()));
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
