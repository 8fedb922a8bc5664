#include <algorithm>
#include <numeric>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/evaluate_impl.h"

namespace parsimony::evaluation {
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
                                "wanted a permutation of " + std::to_string(rank) +
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
  const Shape from = strides_of(data.dims);
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
  const Shape own = strides_of(data.dims);
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
