#include "parsimony/torch_io/cut.h"

#include <ATen/ATen.h>

#include <tuple>
#include <utility>

#include "parsimony/graph/slice.h"
#include "parsimony/torch_io/live/errors.h"

namespace parsimony::torch_io {
namespace {

/// Shapes such as [8, 1, 3, 3] are of several formats; the plain one counts then.
at::MemoryFormat format_of(const at::Tensor& tensor) {
  return tensor.is_contiguous() ? at::MemoryFormat::Contiguous : tensor.suggest_memory_format();
}

}  // namespace

at::Tensor cut(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes) {
  check_slices(name, tensor.sizes().vec(), axes);
  at::Tensor result = tensor.detach();
  for (const AxisKeep& axis : merged(axes)) {
    if (static_cast<int64_t>(axis.keep.size()) == axis.size) continue;
    const at::Tensor keep = at::tensor(axis.keep, at::kLong).to(tensor.device());
    result = result.index_select(axis.axis, keep);
  }
  // A sparse gradient has no memory format.
  return tensor.layout() == at::kStrided ? result.contiguous(format_of(tensor)) : result;
}

at::Tensor with_zeros(const std::string& name, const at::Tensor& tensor, int64_t count) {
  if (count < 0 || count > tensor.numel()) {
    throw live::errors::too_many_zeros(name, count, tensor.numel());
  }
  const at::Tensor values = tensor.detach();
  const at::Tensor magnitude =
      (values.is_complex() ? values.abs() : values.to(at::kDouble).abs()).flatten();
  const at::Tensor order =
      std::get<1>(at::sort(magnitude, /*stable=*/true, /*dim=*/0, /*descending=*/false));
  at::Tensor mask = at::zeros({tensor.numel()}, values.options().dtype(at::kBool));
  mask.index_fill_(0, order.narrow(0, 0, count), true);
  return values.masked_fill(mask.view(tensor.sizes()), 0).contiguous(format_of(tensor));
}

}  // namespace parsimony::torch_io
