// Quantised numbers, computed with as the real numbers they stand for.
#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {
namespace {

/// Scales and zero points lie along `axis` where they are vectors.
at::Tensor placed(const at::Tensor& v, int64_t axis, int64_t rank) {
  return v.numel() == 1 ? v.reshape({}) : along(v, axis, rank);
}

/// Those of `x` too where each is that of a block along `axis`, the last one of which may be short.
at::Tensor placed(const Call& call, size_t i, const at::Tensor& x) {
  const int64_t axis = call.integer("axis", 1);
  const int64_t block = call.integer("block_size", 0);
  if (block == 0) return placed(call.in(i), axis, x.dim());
  return call.in(i).repeat_interleave(block, axis).narrow(axis, 0, x.size(axis));
}

at::Tensor saturated(const at::Tensor& x, at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return at::clamp(x, 0, 255).to(type);
    case at::kChar:
      return at::clamp(x, -128, 127).to(type);
    case at::kShort:
      return at::clamp(x, -32768, 32767).to(type);
    default:
      return x.to(type);
  }
}

/// Operand `i` less its zero point, operand `zero`, as exact numbers; 0 where it is absent.
at::Tensor centred(const Call& call, size_t i, size_t zero, int64_t axis) {
  at::Tensor x = call.in(i).to(at::kDouble);
  if (call.has_in(zero)) x = x - placed(call.in(zero).to(at::kDouble), axis, x.dim());
  if (call.presence(i).defined()) x = x.masked_fill(call.presence(i).logical_not(), 0);
  return x;
}

at::Tensor scale_of(const Call& call, size_t i, int64_t axis, int64_t rank) {
  return placed(call.in(i).to(at::kDouble), axis, rank);
}

at::Tensor requantised(const Call& call, const at::Tensor& y, size_t scale, size_t zero) {
  const at::Tensor& z = call.in(zero);
  return saturated(at::round(y / call.in(scale).to(at::kDouble)) + z.to(at::kDouble),
                   z.scalar_type());
}

}  // namespace

Tensors quantize_linear(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor real = x.is_floating_point() ? x : x.to(at::kFloat);
  at::Tensor y = at::round(real / placed(call, 1, x));
  at::ScalarType type = at::kByte;
  if (call.has_in(2)) {
    type = call.in(2).scalar_type();
    y = y + placed(call, 2, x);
  } else if (call.integer("output_dtype", 0) != 0) {
    type = type_of_code(call, call.integer("output_dtype", 0));
  }
  return {saturated(y, type)};
}

Tensors dequantize_linear(const Call& call) {
  at::Tensor x = call.in(0).to(at::kDouble);
  if (call.has_in(2)) x = x - placed(call, 2, x);
  if (call.presence(0).defined()) x = x.masked_fill(call.presence(0).logical_not(), 0);
  return {x.to(call.in(1).scalar_type()) * placed(call, 1, x)};
}

Tensors dynamic_quantize_linear(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor low = at::clamp_max(at::min(x), 0);
  const at::Tensor high = at::clamp_min(at::max(x), 0);
  const at::Tensor scale = (high - low) / 255;
  const at::Tensor zero = at::clamp(at::round(0 - low / scale), 0, 255);
  return {saturated(at::round(x / scale) + zero, at::kByte), scale, zero.to(at::kByte)};
}

Tensors matmul_integer(const Call& call) {
  // A vector of zero points belongs to the rows of a, the columns of b.
  const at::Tensor a = centred(call, 0, 2, -2);
  const at::Tensor b = centred(call, 1, 3, -1);
  return {at::matmul(a, b).to(at::kInt)};
}

Tensors conv_integer(const Call& call) {
  const at::Tensor y = conv(call.on({centred(call, 0, 2, 1), centred(call, 1, 3, 0)})).front();
  return {at::round(y).to(at::kInt)};
}

Tensors qlinear_matmul(const Call& call) {
  const at::Tensor a = centred(call, 0, 2, -2) * scale_of(call, 1, -2, call.in(0).dim());
  const at::Tensor b = centred(call, 3, 5, -1) * scale_of(call, 4, -1, call.in(3).dim());
  return {requantised(call, at::matmul(a, b), 6, 7)};
}

Tensors qlinear_conv(const Call& call) {
  const at::Tensor x = centred(call, 0, 2, 1) * scale_of(call, 1, 1, call.in(0).dim());
  const at::Tensor scale = scale_of(call, 4, 0, call.in(3).dim());
  const at::Tensor w = centred(call, 3, 5, 0) * scale;
  at::Tensor bias;
  if (call.has_in(8)) {
    bias = call.in(8).to(at::kDouble) * scale.flatten() * call.in(1).to(at::kDouble).flatten();
  }
  return {requantised(call, conv(call.on({x, w, bias})).front(), 6, 7)};
}

}  // namespace parsimony::executor
