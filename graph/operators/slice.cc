// Slice: y[i] = x[start + step * i] on the named axes. A step of 1 maps a run of indices; one that
// takes one of every `step` indices all along, as rotary pairs are taken apart, cuts the axis into
// (pair step), and whole pairs may go. A step of -1 over the whole axis reverses it. Any other step
// pins the dimension.
#include <algorithm>
#include <limits>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
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

}  // namespace parsimony::operators
