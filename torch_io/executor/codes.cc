// Numbers of a few bits: several in a byte, or as real numbers that have few values.
#include <cmath>

#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {

at::Tensor codes_in(const at::Tensor& bytes, int64_t bits) {
  Tensors codes;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    codes.push_back(at::bitwise_and(at::bitwise_right_shift(bytes, shift), (1 << bits) - 1));
  }
  return at::stack(codes, -1).flatten(-2);
}

namespace {

/// [n, c] of bytes that hold several, or of numbers.
at::Tensor zero_points(const Call& call, size_t i, int64_t bits, const at::Tensor& scales) {
  if (!call.has_in(i)) return at::full_like(scales, std::ldexp(1, static_cast<int>(bits) - 1));
  const at::Tensor rows = call.in(i).reshape({scales.size(0), -1});
  if (rows.is_floating_point()) return rows.to(scales.scalar_type());
  return codes_in(rows, bits).narrow(1, 0, scales.size(1)).to(scales.scalar_type());
}

/// [n, k]: rows of codes in blocks, which may reach beyond the last of the k.
at::Tensor real_rows(const Call& call, int64_t bits, int64_t columns) {
  const at::Tensor& bytes = call.in(1);
  const at::Tensor scales = call.in(2).reshape({bytes.size(0), bytes.size(1)});
  const at::Tensor codes = codes_in(bytes, bits).to(scales.scalar_type());  // [n, c, k / c]
  const at::Tensor zeros = zero_points(call, 3, bits, scales).unsqueeze(-1);
  return ((codes - zeros) * scales.unsqueeze(-1)).flatten(1).narrow(1, 0, columns);
}

int64_t bits_of_codes(const Call& call) {
  const int64_t bits = call.integer("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) call.unsupported("has codes that lie across bytes");
  return bits;
}

}  // namespace

Tensors matmul_of_bits(const Call& call) {
  if (call.has_in(4)) call.unsupported("has an index of groups");
  const at::Tensor& x = call.in(0);
  const at::Tensor y = at::matmul(x, real_rows(call, bits_of_codes(call), x.size(-1)).t());
  return {call.has_in(5) ? y + call.in(5) : y};
}

/// Present if any product is: a block of codes is absent as a whole.
Tensors multiplied_codes(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  const int64_t columns = call.in(0).size(-1);
  const at::Tensor blocks = call.presence_numbers(1).amax(-1);  // [n, c]
  const int64_t size = (call.in(1).size(2) * 8) / bits_of_codes(call);
  const at::Tensor rows = blocks.repeat_interleave(size, 1).narrow(1, 0, columns);
  Tensors present{at::matmul(call.presence_numbers(0), rows.t()) > 0.5};
  present.resize(outputs.size());
  return present;
}

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
