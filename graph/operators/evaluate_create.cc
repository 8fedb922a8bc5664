#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>

#include "parsimony/graph/element_type_impl.h"
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
  return converted(*view.constant(0), view.graph().value(view.input(1)).dtype);
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

}  // namespace parsimony::evaluation
