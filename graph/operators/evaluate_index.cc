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

/// Where GatherElements reads and ScatterElements writes: the own position, but for `axis`.
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
  Shape strides = strides_of(data.dims);
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
  Shape wanted(indices.dims.begin(), indices.dims.end() - 1);
  const int64_t tuples = element_count(wanted);
  wanted.insert(wanted.end(), inner, out.dims.end());
  if (updates.dims != wanted) {
    throw errors::shape_mismatch(view.label(), "updates", to_string(wanted),
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
  const Shape strides = strides_of(dims);
  size_t next = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    for (const int64_t at : found) out.ints[next++] = at / strides[d] % dims[d];
  }
  return single(std::move(out));
}

}  // namespace parsimony::evaluation
