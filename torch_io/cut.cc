#include "parsimony/torch_io/cut.h"

#include <ATen/ATen.h>

#include <cstring>
#include <tuple>

#include "parsimony/base/errors.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/slice.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io {
namespace {

/// Returns the memory format. Shapes such as [8, 1, 3, 3] match several; contiguous then counts.
at::MemoryFormat format_of(const at::Tensor& tensor) {
  return tensor.is_contiguous() ? at::MemoryFormat::Contiguous : tensor.suggest_memory_format();
}

/// Whether its elements are contiguous in memory and can be copied as bytes.
bool lies_plainly(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.is_cpu() && tensor.is_contiguous() &&
         !tensor.is_quantized() && !tensor.is_conj() && !tensor.is_neg();
}

at::TensorOptions plain_options(const at::Tensor& tensor) {
  return tensor.options().requires_grad(false);
}

/// Cuts all axes at once; `result` may share memory with `tensor`.
void cut_plainly(const at::Tensor& tensor, std::span<const AxisKeep> axes,
                 const at::Tensor& result) {
  slice(static_cast<const std::byte*>(tensor.data_ptr()), tensor.sizes().vec(),
        static_cast<int64_t>(tensor.element_size()), axes,
        static_cast<std::byte*>(result.data_ptr()));
}

}  // namespace

at::Tensor cut(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes) {
  check_slices(name, tensor.sizes().vec(), axes);
  if (lies_plainly(tensor)) {
    at::Tensor kept = at::empty(sliced(tensor.sizes().vec(), axes), plain_options(tensor));
    cut_plainly(tensor, axes, kept);
    return kept;
  }
  at::Tensor result = tensor.detach();
  for (const AxisKeep& axis : merged(axes)) {
    if (static_cast<int64_t>(axis.keep.size()) == axis.size) continue;
    const at::Tensor keep = at::tensor(axis.keep, at::kLong).to(tensor.device());
    result = result.index_select(axis.axis, keep);
  }
  // A sparse gradient has no memory format.
  return tensor.layout() == at::kStrided ? result.contiguous(format_of(tensor)) : result;
}

at::Tensor cut_in_place(const std::string& name, const at::Tensor& tensor,
                        std::span<const AxisKeep> axes) {
  if (!lies_plainly(tensor)) return cut(name, tensor, axes);
  check_slices(name, tensor.sizes().vec(), axes);
  at::Tensor kept = at::from_blob(
      tensor.data_ptr(), sliced(tensor.sizes().vec(), axes), [tensor](void*) {},
      plain_options(tensor));
  cut_plainly(tensor, axes, kept);
  return kept;
}

at::Tensor with_zeros(const std::string& name, const at::Tensor& tensor, int64_t count) {
  if (count < 0 || count > tensor.numel()) {
    throw ModelError("tensor ", in_quotes(name), ": expected 0 to ", tensor.numel(),
                     " zeros, found ", count);
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

at::Tensor with_values(const std::string& name, const at::Tensor& tensor,
                       std::span<const std::byte> values) {
  const at::Tensor data = tensor.detach();
  const at::Tensor plain = at::empty(data.sizes(), at::TensorOptions(data.scalar_type()));
  if (plain.nbytes() != values.size()) {
    throw parsimony::errors::wrong_bytes(name, static_cast<int64_t>(plain.nbytes()),
                                         std::ssize(values));
  }
  std::memcpy(plain.data_ptr(), values.data(), values.size());
  return plain.to(data.device()).contiguous(format_of(data));
}

void mask_values(const TensorMask& mask, const at::Tensor& tensor) {
  mask_rows(mask, tensor, tensor.sizes().vec(), {});
}

void mask_rows(const TensorMask& mask, const at::Tensor& tensor, const Shape& dims,
               std::span<const int64_t> rows) {
  const at::Tensor data = tensor.detach();
  const at::Tensor plain = lies_plainly(data) ? data : data.cpu().contiguous();
  parsimony::mask_values(mask, {dtype_of(plain.scalar_type()),
                                dims,
                                {static_cast<std::byte*>(plain.data_ptr()), plain.nbytes()},
                                rows});
  if (!plain.is_same(data)) data.copy_(plain);
}

}  // namespace parsimony::torch_io
