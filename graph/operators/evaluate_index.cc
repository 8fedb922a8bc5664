#include <algorithm>
#include <numeric>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/evaluate_impl.h"

namespace parsimony::evaluation {
namespace {

/// Indices counted from the front; empty if one is outside the dimension.
std::optional<std::vector<int64_t>> indices_of(const HostTensor& indices, int64_t size) {
  if (indices.floating()) return std::nullopt;
  std::vector<int64_t> out = indices.ints;
  for (int64_t& index : out) {
    if (index < -size || index >= size) return std::nullopt;
    if (index < 0) index += size;
  }
  return out;
}

/// Returns where GatherElements reads and ScatterElements writes: the own position, but for `axis`.
std::optional<std::vector<int64_t>> element_positions(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const HostTensor& indices = *view.constant(1);
  const size_t axis = axis_of(view, view.attr("axis", 0), data.dims.size());
  bool inside = indices.dims.size() == data.dims.size();
  for (size_t d = 0; inside && d < data.dims.size(); ++d) {
    inside = d == axis || indices.dims[d] <= data.dims[d];
  }
  if (!inside) {
    throw errors::shape_mismatch(view.label(), "indices", "dims within " + to_string(data.dims),
                                 to_string(indices.dims));
  }
  const auto along = indices_of(indices, data.dims[axis]);
  if (!along) return std::nullopt;
  Shape strides = dense_strides(data.dims);
  const int64_t stride = std::exchange(strides[axis], 0);
  std::vector<int64_t> at = positions(indices.dims, strides);
  for (size_t i = 0; i < at.size(); ++i) at[i] += (*along)[i] * stride;
  return at;
}

bool adds_up(const NodeView& view) { return view.attr("reduction", "none") != "none"; }

}  // namespace

Result gather(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const HostTensor& indices = *view.constant(1);
  const size_t axis = axis_of(view, view.attr("axis", 0), data.dims.size());
  const auto along = indices_of(indices, data.dims[axis]);
  const auto middle = data.dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const Shape outer(data.dims.begin(), middle);
  const Shape inner(middle + 1, data.dims.end());
  Shape dims = outer;
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), inner.begin(), inner.end());
  if (!along || !fits(dims)) return std::nullopt;

  const int64_t length = element_count(inner);
  std::vector<int64_t> from;
  for (int64_t block = 0; block < element_count(outer); ++block) {
    for (const int64_t index : *along) {
      const int64_t begin = (block * data.dims[axis] + index) * length;
      for (int64_t i = 0; i < length; ++i) from.push_back(begin + i);
    }
  }
  return single(take(data, dims, from));
}

Result gather_elements(const NodeView& view) {
  const auto at = element_positions(view);
  if (!at) return std::nullopt;
  return single(take(*view.constant(0), view.constant(1)->dims, *at));
}

Result scatter_elements(const NodeView& view) {
  const HostTensor& updates = *view.constant(2);
  HostTensor out = *view.constant(0);
  if (adds_up(view) || updates.floating() != out.floating()) return std::nullopt;
  const auto at = element_positions(view);
  if (!at) return std::nullopt;
  if (updates.dims != view.constant(1)->dims) {
    throw errors::shape_mismatch(view.label(), "updates", to_string(view.constant(1)->dims),
                                 to_string(updates.dims));
  }
  for (size_t i = 0; i < at->size(); ++i) put(out, (*at)[i], updates, i);
  return single(std::move(out));
}

Result scatter_nd(const NodeView& view) {
  HostTensor out = *view.constant(0);
  const HostTensor& indices = *view.constant(1);
  const HostTensor& updates = *view.constant(2);
  if (adds_up(view) || indices.floating() || updates.floating() != out.floating()) {
    return std::nullopt;
  }
  if (indices.dims.empty()) return std::nullopt;
  const int64_t depth = indices.dims.back();
  if (depth > static_cast<int64_t>(out.dims.size())) {
    throw errors::shape_mismatch(view.label(), "indices",
                                 "at most " + std::to_string(out.dims.size()) + " per element",
                                 std::to_string(depth));
  }
  const auto inner = out.dims.begin() + static_cast<std::ptrdiff_t>(depth);
  Shape expected(indices.dims.begin(), indices.dims.end() - 1);
  const int64_t tuples = element_count(expected);
  expected.insert(expected.end(), inner, out.dims.end());
  if (updates.dims != expected) {
    throw errors::shape_mismatch(view.label(), "updates", to_string(expected),
                                 to_string(updates.dims));
  }
  const int64_t length = element_count({inner, out.dims.end()});
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    int64_t block = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t size = out.dims[d];
      const int64_t index = indices.ints[tuple * depth + d];
      if (index < -size || index >= size) return std::nullopt;
      block = block * size + (index < 0 ? index + size : index);
    }
    for (int64_t i = 0; i < length; ++i) {
      put(out, block * length + i, updates, tuple * length + i);
    }
  }
  return single(std::move(out));
}

Result non_zero(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  // Runtimes read a scalar as one element of a vector.
  const Shape dims = data.dims.empty() ? Shape{1} : data.dims;
  std::vector<int64_t> found;
  for (int64_t i = 0; i < data.count(); ++i) {
    if (data.number(i) != 0) found.push_back(i);
  }
  const Shape out_dims = {static_cast<int64_t>(dims.size()), static_cast<int64_t>(found.size())};
  if (!fits(out_dims)) return std::nullopt;
  HostTensor out = zeros(DType::kInt64, out_dims);
  const Shape strides = dense_strides(dims);
  size_t next = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    for (const int64_t at : found) out.ints[next++] = at / strides[d] % dims[d];
  }
  return single(std::move(out));
}

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
  Shape strides = dense_strides(data.dims);
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
