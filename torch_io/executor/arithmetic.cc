// Elementwise arithmetic, comparison and logic.
#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {
namespace {

template <typename Combine>
Tensors fold(const Call& call, const Combine& combine) {
  at::Tensor result = call.in(0);
  for (size_t i = 1; i < call.inputs.size(); ++i) result = combine(result, call.in(i));
  return {result};
}

}  // namespace

at::Tensor second_operand(const Call& call) {
  const at::Tensor& a = call.in(0);
  const at::Tensor& b = call.in(1);
  if (call.opset() >= 7 || !call.has("axis") || b.dim() == 0) return b;
  const int64_t axis = wrapped(call.integer("axis", 0), a.dim());
  Ints dims = b.sizes().vec();
  while (axis + index(dims.size()) < a.dim()) dims.push_back(1);
  return b.reshape(dims);
}

Tensors add(const Call& call) { return {call.in(0) + second_operand(call)}; }
Tensors sub(const Call& call) { return {call.in(0) - second_operand(call)}; }

Tensors div(const Call& call) {
  const at::Tensor& a = call.in(0);
  if (a.is_floating_point()) return {a / second_operand(call)};
  return {at::div(a, second_operand(call), "trunc")};
}

Tensors mod(const Call& call) {
  const at::Tensor& a = call.in(0);
  return {call.integer("fmod", 0) != 0 ? at::fmod(a, call.in(1)) : at::remainder(a, call.in(1))};
}

Tensors pow(const Call& call) {
  const at::Tensor& base = call.in(0);
  const at::Tensor exponent = second_operand(call);
  if (base.scalar_type() == exponent.scalar_type()) return {at::pow(base, exponent)};
  if (base.is_floating_point()) return {at::pow(base, exponent.to(base.scalar_type()))};
  return {at::pow(base.to(at::kDouble), exponent.to(at::kDouble)).to(base.scalar_type())};
}

Tensors max(const Call& call) { return fold(call, at::maximum); }
Tensors min(const Call& call) { return fold(call, at::minimum); }
Tensors sum(const Call& call) {
  return fold(call, [](const at::Tensor& a, const at::Tensor& b) { return a + b; });
}
Tensors mean(const Call& call) { return {sum(call)[0] / static_cast<double>(call.inputs.size())}; }

Tensors bit_shift(const Call& call) {
  const bool left = call.text("direction", "") == "LEFT";
  return {left ? at::bitwise_left_shift(call.in(0), call.in(1))
               : at::bitwise_right_shift(call.in(0), call.in(1))};
}

Tensors where(const Call& call) { return {at::where(call.in(0), call.in(1), call.in(2))}; }

Tensors is_inf(const Call& call) {
  const at::Tensor& x = call.in(0);
  at::Tensor found = at::isinf(x);
  if (call.integer("detect_negative", 1) == 0) found = found & (x > 0);
  if (call.integer("detect_positive", 1) == 0) found = found & (x < 0);
  return {found};
}

Tensors clip(const Call& call) {
  at::Tensor x = call.in(0);
  if (call.opset() < 11) {
    if (call.has("min")) x = at::clamp_min(x, call.real("min", 0));
    if (call.has("max")) x = at::clamp_max(x, call.real("max", 0));
    return {x};
  }
  if (call.has_in(1)) x = at::maximum(x, call.in(1));
  if (call.has_in(2)) x = at::minimum(x, call.in(2));
  return {x};
}

Tensors cast(const Call& call) {
  return {call.in(0).to(call.held(type_of_code(call, call.integer("to", 0))))};
}

Tensors cast_like(const Call& call) { return {call.in(0).to(call.held(call.in(1).scalar_type()))}; }

Tensors identity(const Call& call) { return {call.in(0)}; }

/// y = alpha x + beta; experimental, up to version 8.
Tensors affine(const Call& call) {
  return {call.in(0) * call.real("alpha", 1) + call.real("beta", 0)};
}

/// y[n c h w] = scale x[n c h w] + bias[c]
Tensors image_scaler(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor bias = at::tensor(call.reals("bias"), x.options().device(at::kCPU));
  return {x * call.real("scale", 1) + along(bias.to(x.device()), 1, x.dim())};
}

}  // namespace parsimony::executor
