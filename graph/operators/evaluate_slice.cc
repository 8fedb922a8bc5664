#include <algorithm>
#include <numeric>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/evaluate_impl.h"

namespace parsimony::evaluation {
namespace {

/// Indices begin, begin + step, ... (count of them) of one dimension.
struct StridedRange {
  int64_t begin = 0;
  int64_t step = 1;
  int64_t count = 0;
};

/// numpy's clamping of start:end:step on a dimension of `size`. `step` is not 0.
StridedRange clamped(int64_t start, int64_t end, int64_t step, int64_t size) {
  // A longer step selects one element too, and cannot overflow.
  StridedRange interval{.step = std::clamp(step, -(size + 1), size + 1)};
  const bool forwards = step > 0;
  const auto bounded = [&](int64_t at) {
    if (at < 0) at += size;
    return forwards ? std::clamp<int64_t>(at, 0, size)
                    : std::clamp<int64_t>(at, -1, std::max<int64_t>(size - 1, -1));
  };
  interval.begin = bounded(start);
  const int64_t last = bounded(end);
  const int64_t span = forwards ? last - interval.begin : interval.begin - last;
  if (span > 0) interval.count = (span - 1) / std::abs(interval.step) + 1;
  return interval;
}

HostTensor cut(const HostTensor& data, const std::vector<StridedRange>& intervals) {
  Shape dims;
  Shape strides = strides_of(data.dims);
  int64_t offset = 0;
  for (size_t d = 0; d < intervals.size(); ++d) {
    dims.push_back(intervals[d].count);
    offset += intervals[d].begin * strides[d];
    strides[d] *= intervals[d].step;
  }
  return take(data, dims, positions(dims, strides, offset));
}

std::vector<StridedRange> whole(const Shape& dims) {
  std::vector<StridedRange> intervals;
  for (const int64_t dim : dims) intervals.push_back({.count = dim});
  return intervals;
}

/// Lengths of the outputs of a Split along a dimension of `size`.
std::vector<int64_t> parts_of(const NodeView& view, int64_t size) {
  if (const auto asked = integers(view, "split", 1)) return *asked;
  // Equal parts; of `num_outputs` parts (opset 18) the last may be shorter.
  const auto parts = static_cast<int64_t>(view.outputs());
  const int64_t length = (size + parts - 1) / parts;
  std::vector<int64_t> lengths(parts, length);
  lengths.back() = size - length * (parts - 1);
  if (lengths.back() != length && view.find("num_outputs") == nullptr) lengths.back() = -1;
  return lengths;
}

std::string listed(const NodeView& view) {
  std::string text;
  for (int i = 0; i < std::min(view.inputs(), 8); ++i) {
    text += (i > 0 ? " " : "") + (view.has_input(i) ? to_string(view.constant(i)->dims) : "-");
  }
  return text;
}

}  // namespace

Result concat(const NodeView& view) {
  const HostTensor& first = *view.constant(0);
  const size_t axis = axis_of(view, view.attr("axis", 0), first.dims.size());
  Shape dims = first.dims;
  dims[axis] = 0;
  for (int i = 0; i < view.inputs(); ++i) {
    if (!view.has_input(i)) return std::nullopt;
    const HostTensor& part = *view.constant(i);
    if (part.floating() != first.floating()) return std::nullopt;
    Shape others = part.dims;
    if (others.size() == dims.size()) others[axis] = dims[axis];
    if (others != dims) {
      throw errors::shape_mismatch(view.label(), "operands",
                                   "equal dims but for axis " + std::to_string(axis), listed(view));
    }
    dims[axis] += part.dims[axis];
    if (!fits(dims)) return std::nullopt;
  }
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const int64_t outer = element_count({dims.begin(), middle});
  HostTensor out = zeros(first.dtype, dims);
  out.ints.clear();
  out.floats.clear();
  for (int64_t block = 0; block < outer; ++block) {
    for (int i = 0; i < view.inputs(); ++i) {
      const HostTensor& part = *view.constant(i);
      const int64_t length = part.count() / outer;
      const auto copy = [&](const auto& from, auto& to) {
        const auto begin = from.begin() + block * length;
        to.insert(to.end(), begin, begin + length);
      };
      part.floating() ? copy(part.floats, out.floats) : copy(part.ints, out.ints);
    }
  }
  return single(std::move(out));
}

Result slice(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const auto starts = integers(view, "starts", 1);
  const auto ends = integers(view, "ends", 2);
  if (!starts || !ends) return std::nullopt;
  std::vector<size_t> axes = axes_of(view, 3, data.dims.size());
  if (view.find("axes") == nullptr && !view.has_input(3)) {
    axes.resize(std::min(starts->size(), data.dims.size()));
    std::iota(axes.begin(), axes.end(), size_t{0});
  }
  const auto steps = integers(view, "steps", 4).value_or(std::vector<int64_t>(axes.size(), 1));
  if (starts->size() != axes.size() || ends->size() != axes.size() || steps.size() != axes.size()) {
    throw errors::shape_mismatch(
        view.label(), "starts, ends and steps", std::to_string(axes.size()) + " of each",
        std::to_string(starts->size()) + ", " + std::to_string(ends->size()) + " and " +
            std::to_string(steps.size()));
  }
  std::vector<StridedRange> intervals = whole(data.dims);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) throw errors::bad_attribute(view.label(), "steps", "a step may not be 0");
    intervals[axes[i]] = clamped((*starts)[i], (*ends)[i], steps[i], data.dims[axes[i]]);
  }
  return single(cut(data, intervals));
}

Result split(const NodeView& view) {
  if (view.outputs() == 0) return std::nullopt;
  const HostTensor& data = *view.constant(0);
  const size_t axis = axis_of(view, view.attr("axis", 0), data.dims.size());
  const std::vector<int64_t> lengths = parts_of(view, data.dims[axis]);
  int64_t begin = 0;
  std::vector<HostTensor> outputs;
  std::vector<StridedRange> intervals = whole(data.dims);
  for (const int64_t length : lengths) {
    if (length < 0 || length > data.dims[axis] - begin) break;
    intervals[axis] = {.begin = begin, .count = length};
    outputs.push_back(cut(data, intervals));
    begin += length;
  }
  if (begin != data.dims[axis] || static_cast<int>(outputs.size()) != view.outputs()) {
    throw errors::shape_mismatch(
        view.label(), "split",
        std::to_string(view.outputs()) + " parts of " + std::to_string(data.dims[axis]),
        to_string(lengths));
  }
  return outputs;
}

}  // namespace parsimony::evaluation
