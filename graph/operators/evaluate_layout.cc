#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/element_type_impl.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/evaluate_impl.h"

namespace parsimony::evaluation {
namespace {

/// Integers wrap, as they do in every runtime: an open end of INT64_MAX becomes -1 in int32.
int64_t wrapped(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0 ? 1 : 0;
  return with_element_type(dtype, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<int64_t>(static_cast<T>(value));
    } else {
      return value;
    }
  });
}

std::optional<int64_t> truncated(DType dtype, double value) {
  if (dtype == DType::kBool) return value != 0 ? 1 : 0;
  const double whole = std::trunc(value);
  if (!(whole >= -0x1p63 && whole < 0x1p63)) return std::nullopt;
  return checked(dtype, static_cast<int64_t>(whole));
}

Result converted(const HostTensor& from, DType dtype) {
  if (size_of(dtype) == 0) return std::nullopt;
  HostTensor out = zeros(dtype, from.dims);
  for (int64_t i = 0; i < from.count(); ++i) {
    const size_t at = i;
    if (out.floating()) {
      out.floats[at] = rounded(dtype, from.number(i));
    } else if (from.floating()) {
      const std::optional<int64_t> whole = truncated(dtype, from.floats[at]);
      if (!whole) return std::nullopt;
      out.ints[at] = *whole;
    } else {
      out.ints[at] = wrapped(dtype, from.ints[at]);
    }
  }
  return single(std::move(out));
}

std::optional<HostTensor> integer_range(const std::vector<const HostTensor*>& operands) {
  const int64_t start = operands[0]->ints[0];
  const int64_t limit = operands[1]->ints[0];
  const int64_t delta = operands[2]->ints[0];
  if (delta == 0) return std::nullopt;
  HostTensor out = HostTensor::vector({}, operands[0]->dtype);
  if (delta > 0 ? start >= limit : start <= limit) return out;
  // Differences of int64 fit uint64 and wrap to the right value there.
  const auto first = static_cast<uint64_t>(start);
  const auto last = static_cast<uint64_t>(limit);
  const auto step = static_cast<uint64_t>(delta);
  const uint64_t span = delta > 0 ? last - first : first - last;
  const uint64_t stride = delta > 0 ? step : 0 - step;
  const uint64_t count = (span - 1) / stride + 1;
  if (count > static_cast<uint64_t>(kMaxElements)) return std::nullopt;
  for (uint64_t i = 0; i < count; ++i) {
    out.ints.push_back(static_cast<int64_t>(first + i * step));
  }
  out.dims = {static_cast<int64_t>(count)};
  return out;
}

std::optional<HostTensor> floating_range(const std::vector<const HostTensor*>& operands) {
  const double start = operands[0]->number(0);
  const double limit = operands[1]->number(0);
  const double delta = operands[2]->number(0);
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (delta == 0 || !(count <= static_cast<double>(kMaxElements))) return std::nullopt;
  HostTensor out = zeros(operands[0]->dtype, {static_cast<int64_t>(count)});
  for (size_t i = 0; i < out.floats.size(); ++i) {
    out.floats[i] = rounded(out.dtype, start + static_cast<double>(i) * delta);
  }
  return out;
}

}  // namespace

Result shape(const NodeView& view) {
  const Shape* dims = view.in_shape(0);
  if (dims == nullptr || dims->size() > kMaxRank) return std::nullopt;
  if (std::ranges::any_of(*dims, [](int64_t dim) { return dim < 0; })) {
    return std::nullopt;
  }
  const auto rank = static_cast<int64_t>(dims->size());
  const auto clamped = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = clamped(view.attr("start", 0));
  const int64_t end = std::max(start, clamped(view.attr("end", rank)));
  return single(HostTensor::vector({dims->begin() + start, dims->begin() + end}));
}

Result size(const NodeView& view) {
  const Shape* dims = view.in_shape(0);
  if (dims == nullptr) return std::nullopt;
  return single(HostTensor::scalar(element_count(*dims)));
}

Result cast(const NodeView& view) {
  return converted(*view.constant(0), dtype_of_onnx(view.attr("to", 0)));
}

Result cast_like(const NodeView& view) {
  const DType type = view.graph().value(view.input(1)).dtype;  // a file may not declare it
  return type == DType::kUnknown ? single(*view.constant(0)) : converted(*view.constant(0), type);
}

Result constant_of_shape(const NodeView& view) {
  const HostTensor& dims = *view.constant(0);
  if (dims.floating() || dims.dims.size() != 1 || !fits(dims.ints)) return std::nullopt;
  const Attribute* value = view.find("value");
  HostTensor out = zeros(DType::kFloat32, dims.ints);
  if (value == nullptr) return single(std::move(out));
  if (const auto* numbers = std::get_if<std::vector<double>>(value)) {
    if (numbers->size() != 1) return std::nullopt;
    std::ranges::fill(out.floats, rounded(out.dtype, numbers->front()));
    return single(std::move(out));
  }
  const auto* integers = std::get_if<std::vector<int64_t>>(value);
  if (integers == nullptr || integers->size() != 1) return std::nullopt;
  out = zeros(DType::kInt64, dims.ints);
  std::ranges::fill(out.ints, integers->front());
  return single(std::move(out));
}

Result range(const NodeView& view) {
  std::vector<const HostTensor*> operands;
  for (int i = 0; i < 3; ++i) {
    operands.push_back(view.constant(i));
    if (operands.back()->count() != 1) return std::nullopt;
    if (operands.back()->floating() != operands.front()->floating()) return std::nullopt;
  }
  std::optional<HostTensor> out =
      operands[0]->floating() ? floating_range(operands) : integer_range(operands);
  return out ? single(std::move(*out)) : std::nullopt;
}

namespace {

Result with_dims(const NodeView& view, Shape dims) {
  HostTensor out = *view.constant(0);
  out.dims = std::move(dims);
  return single(std::move(out));
}

/// The source axis of output axis `out`; reversed by default.
std::vector<size_t> permutation_of(const NodeView& view, size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.rbegin(), order.rend(), size_t{0});
  if (view.find("perm") == nullptr) return order;
  const std::vector<int64_t> perm = view.attrs("perm");
  std::vector<bool> named(rank, false);
  for (size_t d = 0; d < perm.size() && d < rank; ++d) {
    order[d] = axis_of(view, perm[d], rank);
    named[order[d]] = true;
  }
  if (perm.size() != rank || contains(named, false)) {
    throw errors::bad_attribute(view.label(), "perm",
                                "expected a permutation of " + std::to_string(rank) +
                                    " dimensions, found " + to_string(perm));
  }
  return order;
}

/// Replaces 0 and -1 in the target of a Reshape; empty if -1 cannot be determined.
std::optional<Shape> resolved(const NodeView& view, const Shape& from, Shape target) {
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t d = 0; d < target.size(); ++d) {
    if (target[d] == 0 && view.attr("allowzero", 0) == 0 && d < from.size()) target[d] = from[d];
    if (target[d] == -1) {
      if (open) return std::nullopt;
      open = d;
      continue;
    }
    if (target[d] < 0 || target[d] > kMaxElements) return std::nullopt;
    known = std::min(known * target[d], kMaxElements + 1);
  }
  if (!open) return target;
  if (known == 0) return std::nullopt;
  target[*open] = element_count(from) / known;
  return target;
}

}  // namespace

Result identity(const NodeView& view) { return single(*view.constant(0)); }

Result reshape(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const std::optional<Shape> asked = integers(view, "shape", 1);
  if (!asked || asked->size() > kMaxRank) return std::nullopt;
  std::optional<Shape> dims = resolved(view, data.dims, *asked);
  if (!dims) return std::nullopt;
  if (!fits(*dims) || element_count(*dims) != data.count()) {
    throw errors::shape_mismatch(
        view.label(), "shape",
        std::to_string(data.count()) + " elements as in " + to_string(data.dims),
        to_string(*asked));
  }
  return with_dims(view, std::move(*dims));
}

Result flatten(const NodeView& view) {
  const Shape& dims = view.constant(0)->dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = view.attr("axis", 1);
  // The axis may equal the rank, unlike everywhere else.
  const size_t split = axis == rank ? dims.size() : axis_of(view, axis, dims.size());
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(split);
  return with_dims(view,
                   {element_count({dims.begin(), middle}), element_count({middle, dims.end()})});
}

Result squeeze(const NodeView& view) {
  const Shape& from = view.constant(0)->dims;
  const bool all = view.find("axes") == nullptr && !view.has_input(1);
  const std::vector<size_t> axes = axes_of(view, 1, from.size());
  Shape dims;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool named = contains(axes, d);
    if (named && from[d] != 1) {
      throw errors::shape_mismatch(view.label(), "dimension " + std::to_string(d), "1",
                                   std::to_string(from[d]));
    }
    if (!named && !(all && from[d] == 1)) dims.push_back(from[d]);
  }
  return with_dims(view, std::move(dims));
}

Result unsqueeze(const NodeView& view) {
  const Shape& from = view.constant(0)->dims;
  const auto asked = integers(view, "axes", 1);
  if (!asked || from.size() + asked->size() > kMaxRank) return std::nullopt;
  const size_t rank = from.size() + asked->size();
  const std::vector<size_t> axes = axes_of(view, 1, rank);
  Shape dims;
  auto next = from.begin();
  for (size_t d = 0; d < rank; ++d) {
    const bool fresh = contains(axes, d);
    dims.push_back(fresh ? 1 : *next++);
  }
  return with_dims(view, std::move(dims));
}

Result transpose(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const Shape from = dense_strides(data.dims);
  Shape dims;
  Shape strides;
  for (const size_t d : permutation_of(view, data.dims.size())) {
    dims.push_back(data.dims[d]);
    strides.push_back(from[d]);
  }
  return single(take(data, dims, positions(dims, strides)));
}

Result expand(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const HostTensor& target = *view.constant(1);
  if (target.floating() || !fits(target.ints)) return std::nullopt;
  const Shape dims = broadcast(view, data.dims, target.ints);
  if (!fits(dims)) return std::nullopt;
  return single(take(data, dims, positions(dims, broadcast_strides(data.dims, dims))));
}

Result tile(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const HostTensor& repeats = *view.constant(1);
  const size_t rank = data.dims.size();
  if (repeats.floating() || view.inputs() > 2) return std::nullopt;  // opset 1 had an axis
  if (repeats.ints.size() != rank) {
    throw errors::shape_mismatch(view.label(), "repeats", std::to_string(rank) + " numbers",
                                 to_string(repeats.ints));
  }
  if (!fits(repeats.ints)) return std::nullopt;
  // [r0, d0, r1, d1, ...], with stride 0 for the repeats.
  const Shape own = dense_strides(data.dims);
  Shape dims;
  Shape twofold;
  Shape strides;
  for (size_t d = 0; d < rank; ++d) {
    dims.push_back(data.dims[d] * repeats.ints[d]);
    twofold.insert(twofold.end(), {repeats.ints[d], data.dims[d]});
    strides.insert(strides.end(), {0, own[d]});
  }
  if (!fits(dims)) return std::nullopt;
  return single(take(data, dims, positions(twofold, strides)));
}

/// A list whose tensors are all alike, as one of them: vectors only.
Result split_to_list(const NodeView& view) {
  const HostTensor& x = *view.constant(0);
  if (x.dims.size() != 1 || x.count() == 0) return std::nullopt;
  int64_t size = 1;
  if (view.has_input(1)) {
    const HostTensor& sizes = *view.constant(1);
    if (sizes.floating() || sizes.ints.empty()) return std::nullopt;
    size = sizes.ints.front();
    if (std::ranges::any_of(sizes.ints, [&](int64_t n) { return n != size; })) return std::nullopt;
  }
  if (size <= 0 || x.count() % size != 0) return std::nullopt;
  for (int64_t i = size; i < x.count(); ++i) {
    if (x.number(i) != x.number(i % size)) return std::nullopt;
  }
  const bool keeps = view.has_input(1) || view.attr("keepdims", 1) != 0;
  std::vector<int64_t> first(static_cast<size_t>(size));
  std::iota(first.begin(), first.end(), 0);
  return single(take(x, keeps ? Shape{size} : Shape{}, first));
}

Result element_of_list(const NodeView& view) { return single(HostTensor(*view.constant(0))); }

}  // namespace parsimony::evaluation
