// Real numbers that have few values.
#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {
namespace {

/// @source QONNX, Quant: rounding modes
at::Tensor rounded_as(const Call& call, const at::Tensor& x, const std::string& otherwise) {
  const std::string mode = call.text("rounding_mode", otherwise);
  if (mode == "ROUND" || mode == "HALF_EVEN") return at::round(x);
  if (mode == "CEIL") return at::ceil(x);
  if (mode == "FLOOR") return at::floor(x);
  if (mode == "DOWN" || mode == "ROUND_TO_ZERO") return at::trunc(x);
  if (mode == "UP") return at::sign(x) * at::ceil(at::abs(x));
  if (mode == "HALF_UP") return at::sign(x) * at::floor(at::abs(x) + 0.5);
  if (mode == "HALF_DOWN") return at::sign(x) * at::ceil(at::abs(x) - 0.5);
  call.unsupported("rounds as \"" + mode + "\"");
}

}  // namespace

// @source QONNX, custom operators Quant, BipolarQuant and Trunc

Tensors fake_quantise(const Call& call) {
  const at::Tensor& scale = call.in(1);
  const at::Tensor& zero = call.in(2);
  const bool narrow = call.integer("narrow", 0) != 0;
  const bool is_signed = call.integer("signed", 1) != 0;
  const at::Tensor range = at::pow(2, call.in(3) - (is_signed ? 1 : 0));
  const at::Tensor low = is_signed ? (narrow ? 1 : 0) - range : at::zeros_like(range);
  const at::Tensor high = range - (narrow && !is_signed ? 2 : 1);
  const at::Tensor codes = at::minimum(at::maximum(call.in(0) / scale + zero, low), high);
  return {(rounded_as(call, codes, "ROUND") - zero) * scale};
}

Tensors fake_truncate(const Call& call) {
  if (call.inputs.size() > 5) call.unsupported("has a scale of its result");
  const at::Tensor& scale = call.in(1);
  const at::Tensor& zero = call.in(2);
  const at::Tensor codes = at::round(call.in(0) / scale + zero);
  const at::Tensor step = at::pow(2, call.in(3) - call.in(4));
  return {(rounded_as(call, codes / step, "FLOOR") - zero) * scale};
}

Tensors bipolar_quantise(const Call& call) {
  const at::Tensor& x = call.in(0);
  return {at::where(x >= 0, call.in(1), -call.in(1)).to(x.scalar_type())};
}

}  // namespace parsimony::executor
