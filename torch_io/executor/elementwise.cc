// Elementwise operators: arithmetic, comparison, logic, activations; softmax and its relatives.
#include <algorithm>

#include "parsimony/torch_io/executor/operators_impl.h"

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
  return {call.in(0).to(call.stored_type(type_of_code(call, call.integer("to", 0))))};
}

Tensors bit_cast(const Call& call) {
  return {call.in(0).contiguous().view(type_of_code(call, call.integer("to", 0)))};
}

/// Words are no tensors of libtorch.
Tensors label_encoder(const Call& call) { call.unsupported("labels of any type"); }

Tensors cast_like(const Call& call) {
  return {call.in(0).to(call.stored_type(call.in(1).scalar_type()))};
}

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

namespace {

/// Far below any computed value, but finite, so that gradients are not NaN.
constexpr double kAbsent = -1e30;

/// Before version 13 all axes from `axis` on were normalised together.
template <typename Along>
Tensors over_axis(const Call& call, const Along& normalised) {
  const at::Tensor x = call.filled(0, kAbsent);
  if (call.opset() >= 13) return {normalised(x, call.integer("axis", -1))};
  const int64_t axis = x.dim() == 0 ? 0 : call.integer("axis", 1);
  const int64_t from = axis < 0 ? axis + x.dim() : axis;
  int64_t rows = 1;
  for (int64_t i = 0; i < from; ++i) rows *= x.size(i);
  return {
      normalised(x.reshape({rows, x.numel() / std::max<int64_t>(rows, 1)}), 1).reshape(x.sizes())};
}

}  // namespace

Tensors celu(const Call& call) { return {at::celu(call.in(0), call.real("alpha", 1))}; }
Tensors elu(const Call& call) { return {at::elu(call.in(0), call.real("alpha", 1))}; }

Tensors gelu(const Call& call) { return {at::gelu(call.in(0), call.text("approximate", "none"))}; }

Tensors hard_sigmoid(const Call& call) {
  return {at::clamp(call.in(0) * call.real("alpha", 0.2) + call.real("beta", 0.5), 0, 1)};
}

Tensors hard_swish(const Call& call) {
  return {call.in(0) * at::clamp(call.in(0) / 6 + 0.5, 0, 1)};
}

Tensors leaky_relu(const Call& call) {
  return {at::leaky_relu(call.in(0), call.real("alpha", 0.01))};
}

Tensors mish(const Call& call) { return {call.in(0) * at::tanh(at::softplus(call.in(0)))}; }

Tensors prelu(const Call& call) {
  const at::Tensor& x = call.in(0);
  at::Tensor slope = call.in(1);
  // Up to version 6 a vector of slopes was per channel.
  if (call.opset() < 7 && slope.dim() == 1 && x.dim() > 1) slope = along(slope, 1, x.dim());
  return {at::where(x < 0, x * slope, x)};
}

Tensors selu(const Call& call) {
  const double alpha = call.real("alpha", 1.67326319217681884765625);
  const double gamma = call.real("gamma", 1.05070102214813232421875);
  return {at::elu(call.in(0), alpha) * gamma};
}

Tensors shrink(const Call& call) {
  const at::Tensor& x = call.in(0);
  const double bias = call.real("bias", 0);
  const double lambda = call.real("lambd", 0.5);
  const at::Tensor zero = at::zeros_like(x);
  return {
      at::where(x < -lambda, x + bias, at::where(x > lambda, x - bias, zero)).to(x.scalar_type())};
}

Tensors softsign(const Call& call) { return {call.in(0) / (1 + at::abs(call.in(0)))}; }

/// Unlike ONNX's, at::softplus is linear beyond its threshold.
Tensors softplus(const Call& call) {
  return {at::logaddexp(call.in(0), at::zeros({}, call.in(0).options()))};
}

Tensors thresholded_relu(const Call& call) {
  return {at::threshold(call.in(0), call.real("alpha", 1), 0)};
}

Tensors softmax(const Call& call) {
  return over_axis(call, [](const at::Tensor& x, int64_t axis) { return at::softmax(x, axis); });
}

Tensors log_softmax(const Call& call) {
  return over_axis(call,
                   [](const at::Tensor& x, int64_t axis) { return at::log_softmax(x, axis); });
}

Tensors hardmax(const Call& call) {
  return over_axis(call, [](const at::Tensor& x, int64_t axis) {
    return at::zeros_like(x).scatter(axis, at::argmax(x, axis, true), 1);
  });
}

/// Drops in training mode only, regardless of the operand `training_mode`.
Tensors dropout(const Call& call) {
  const at::Tensor& x = call.in(0);
  const double ratio = call.opset() >= 12 ? call.number_in(1, 0.5) : call.real("ratio", 0.5);
  if (!call.training || ratio <= 0) return {x, at::ones_like(x, at::kBool)};
  const at::Tensor kept = at::rand_like(x, at::kFloat) >= ratio;
  return {x * kept / (1 - ratio), kept};
}

}  // namespace parsimony::executor
