// Lists of tensors of one shape, as one tensor with an axis in front.
#include <algorithm>

#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {
namespace {

/// The place that operand `i` names; `fallback` where it is absent.
int64_t place_in(const Call& call, size_t i, int64_t fallback) {
  if (!call.has_in(i)) return fallback;
  const int64_t place = call.ints_in(i).at(0);
  return place < 0 ? place + call.in(0).size(0) : place;
}

}  // namespace

Tensors sequence_construct(const Call& call) {
  for (const at::Tensor& tensor : call.inputs) {
    if (tensor.sizes() != call.in(0).sizes()) call.unsupported("a list of several shapes");
  }
  return {at::stack(call.inputs)};
}

Tensors sequence_empty(const Call& /*call*/) { return {at::empty({0})}; }

Tensors sequence_at(const Call& call) { return {call.in(0).select(0, place_in(call, 1, 0))}; }

Tensors sequence_length(const Call& call) {
  return {at::scalar_tensor(call.in(0).size(0), at::kLong)};
}

Tensors sequence_insert(const Call& call) {
  const at::Tensor& list = call.in(0);
  const at::Tensor added = call.in(1).unsqueeze(0);
  if (list.size(0) == 0) return {added};
  if (list.sizes().slice(1) != call.in(1).sizes()) call.unsupported("a list of several shapes");
  const int64_t place = place_in(call, 2, list.size(0));
  return {at::cat({list.narrow(0, 0, place), added, list.slice(0, place)})};
}

Tensors sequence_erase(const Call& call) {
  const at::Tensor& list = call.in(0);
  const int64_t place = place_in(call, 1, list.size(0) - 1);
  return {at::cat({list.narrow(0, 0, place), list.slice(0, place + 1)})};
}

Tensors split_to_sequence(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = wrapped(call.integer("axis", 0), x.dim());
  if (!call.has_in(1)) {
    const bool keeps = call.integer("keepdims", 1) != 0;
    const at::Tensor list = at::stack(x.unbind(axis));
    return {keeps ? list.unsqueeze(axis + 1) : list};
  }
  const Ints sizes = call.ints_in(1);
  const bool even = !sizes.empty() && sizes[0] > 0 &&
                    std::ranges::all_of(sizes, [&](int64_t n) { return n == sizes[0]; });
  if (!even || x.size(axis) % sizes[0] != 0) call.unsupported("a list of several shapes");
  return {at::stack(x.split(sizes[0], axis))};
}

Tensors concat_from_sequence(const Call& call) {
  const Tensors all = call.in(0).unbind(0);
  const bool is_new = call.integer("new_axis", 0) != 0;
  const int64_t axis = wrapped(call.integer("axis", 0), all.at(0).dim() + (is_new ? 1 : 0));
  return {is_new ? at::stack(all, axis) : at::cat(all, axis)};
}

}  // namespace parsimony::executor
