// Quantised operators, computed with the real numbers they represent; types of a few bits.
#include <array>
#include <cmath>
#include <limits>

#include "parsimony/base/types.h"
#include "parsimony/torch_io/executor/operators_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {
namespace {

/// Returns operand `i`, scales or zero points, broadcast to the elements of `x`: one for all, one
/// per position along `axis`, or one per block along it, the last of which may be short.
at::Tensor placed(const Call& call, size_t i, const at::Tensor& x, int64_t axis) {
  const at::Tensor& v = call.in(i);
  const int64_t block = call.integer("block_size", 0);
  if (block != 0) return v.repeat_interleave(block, axis).narrow(axis, 0, x.size(axis));
  return v.numel() == 1 ? v.reshape({}) : along(v, axis, x.dim());
}

/// Rounds to the nearest value of an integer type; ties to even.
at::Tensor saturated(const at::Tensor& x, DType type) {
  const at::ScalarType held = torch_io::stored_as(type);
  if (bits_of(type) > 16) return x.to(held);
  const bool is_signed =
      type == DType::kInt2 || type == DType::kInt4 || type == DType::kInt8 || type == DType::kInt16;
  const double range = std::ldexp(1, static_cast<int>(bits_of(type)) - (is_signed ? 1 : 0));
  return at::clamp(x, is_signed ? -range : 0, range - 1).to(held);
}

at::Tensor saturated(const at::Tensor& x, at::ScalarType type) {
  return saturated(x, torch_io::dtype_of(type));
}

/// Rounds to the nearest value of a floating-point type of few bits, saturating.
at::Tensor nearest_floats(const at::Tensor& x, DType type) {
  const std::array<float, 256>& all = small_floats(type);
  float largest = 0;
  float least = std::numeric_limits<float>::infinity();
  for (const float each : all) {
    if (std::isfinite(each)) largest = std::max(largest, each);
    if (each > 0) least = std::min(least, each);
  }
  // The spacing of neighbours: that of the smallest values if the exponent is at its minimum.
  const int mantissa_bits = type == DType::kFloat4E2M1                                       ? 1
                            : type == DType::kFloat8E4M3FN || type == DType::kFloat8E4M3FNUZ ? 3
                                                                                             : 2;
  const at::Tensor numbers = at::clamp(x.to(at::kDouble), -largest, largest);
  const at::Tensor exponent = std::get<1>(at::frexp(numbers)) - 1 - mantissa_bits;
  const at::Tensor step = at::clamp_min(at::ldexp(at::ones({}, at::kDouble), exponent), least);
  return (at::round(numbers / step) * step).to(at::kFloat);
}

/// Returns operand `i` minus its zero point, operand `zero`, exactly; 0 where it is absent.
at::Tensor centred(const Call& call, size_t i, size_t zero, int64_t axis) {
  at::Tensor x = call.in(i).to(at::kDouble);
  if (call.has_in(zero)) x = x - placed(call, zero, x, axis);
  if (call.presence(i).defined()) x = x.masked_fill(call.presence(i).logical_not(), 0);
  return x;
}

/// Returns the real values of operand `i`; its scale and zero point are the next two operands.
at::Tensor real(const Call& call, size_t i, int64_t axis) {
  return centred(call, i, i + 2, axis) * placed(call, i + 1, call.in(i), axis).to(at::kDouble);
}

/// Rounds to the output's integer type, using the zero point of operand `zero`; without one it is
/// 0, of the data's type.
at::Tensor rounded(const Call& call, const at::Tensor& y, size_t zero) {
  const at::Tensor z = call.has_in(zero) ? call.in(zero) : at::zeros({}, call.in(0).scalar_type());
  return saturated(at::round(y).to(at::kDouble) + z.to(at::kDouble), z.scalar_type());
}

/// Quantises with scale and zero point of these operands.
at::Tensor requantised(const Call& call, const at::Tensor& y, size_t scale, size_t zero) {
  return rounded(call, y / call.in(scale).to(at::kDouble), zero);
}

/// Requantises sums of integer products by one factor in single precision as runtimes do, so that
/// ties round the same way.
/// @param scales of the products
at::Tensor rescaled(const Call& call, const at::Tensor& sums, const at::Tensor& scales,
                    size_t scale, size_t zero) {
  return rounded(call, sums.to(at::kFloat) * (scales / call.in(scale)).to(at::kFloat), zero);
}

}  // namespace

Tensors quantize_linear(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = call.integer("axis", 1);
  const at::Tensor numbers = x.is_floating_point() ? x : x.to(at::kFloat);
  at::Tensor y = numbers / placed(call, 1, x, axis);
  DType type = dtype_of_onnx(call.integer("output_dtype", 0));
  if (type == DType::kUnknown) type = call.has_in(2) ? call.type_in(2) : DType::kUInt8;
  if (is_small_float(type)) return {nearest_floats(y, type)};
  y = at::round(y);
  if (call.has_in(2)) y = y + placed(call, 2, x, axis);
  return {saturated(y, type)};
}

Tensors dequantize_linear(const Call& call) {
  const int64_t axis = call.integer("axis", 1);
  const at::Tensor y = centred(call, 0, 2, axis).to(call.in(1).scalar_type());
  return {y * placed(call, 1, y, axis)};
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
  // Vectors of zero points are per row of a, per column of b.
  const at::Tensor a = centred(call, 0, 2, -2);
  const at::Tensor b = centred(call, 1, 3, -1);
  return {at::matmul(a, b).to(at::kInt)};
}

Tensors conv_integer(const Call& call) {
  const at::Tensor y = conv(call.on({centred(call, 0, 2, 1), centred(call, 1, 3, 0)})).front();
  return {at::round(y).to(at::kInt)};
}

Tensors qlinear_matmul(const Call& call) {
  const at::Tensor sums = at::matmul(centred(call, 0, 2, -2), centred(call, 3, 5, -1));
  return {rescaled(call, sums, placed(call, 1, sums, -2) * placed(call, 4, sums, -1), 6, 7)};
}

Tensors qlinear_conv(const Call& call) {
  const at::Tensor bias = call.has_in(8) ? call.in(8).to(at::kDouble) : at::Tensor();
  const at::Tensor sums =
      conv(call.on({centred(call, 0, 2, 1), centred(call, 3, 5, 0), bias})).front();
  return {rescaled(call, sums, call.in(1) * placed(call, 4, sums, 1), 6, 7)};
}

// Operators of com.microsoft. @source onnxruntime, ContribOperators.md

Tensors qlinear_add(const Call& call) {
  return {requantised(call, real(call, 0, 1) + real(call, 3, 1), 6, 7)};
}

Tensors qlinear_mul(const Call& call) {
  return {requantised(call, real(call, 0, 1) * real(call, 3, 1), 6, 7)};
}

namespace {

/// Runs the plain kernel on one operand's real values and quantises the result.
Tensors through(const Call& call, Kernel* plain) {
  if (call.integer("channels_last", 0) != 0) call.unsupported("channels_last is not supported");
  return {requantised(call, plain(call.on({real(call, 0, 1)})).front(), 3, 4)};
}

}  // namespace

Tensors qlinear_average_pool(const Call& call) { return through(call, average_pool); }
Tensors qlinear_global_average_pool(const Call& call) { return through(call, global_average_pool); }
Tensors qlinear_leaky_relu(const Call& call) { return through(call, leaky_relu); }
Tensors qlinear_sigmoid(const Call& call) { return through(call, unary<at::sigmoid>); }

Tensors qlinear_concat(const Call& call) {
  Tensors parts;
  for (size_t i = 2; i < call.inputs.size(); i += 3) parts.push_back(real(call, i, 1));
  return {requantised(call, concat(call.on(std::move(parts))).front(), 0, 1)};
}

Tensors dynamic_quantize_matmul(const Call& call) {
  const Tensors a = dynamic_quantize_linear(call.on({call.in(0)}));  // then scale and zero point
  const at::Tensor numbers = (a[0].to(at::kDouble) - a[2].to(at::kDouble)) * a[1].to(at::kDouble);
  const at::Tensor b = centred(call, 1, 3, -1) * placed(call, 2, call.in(1), -1).to(at::kDouble);
  const at::Tensor y = at::matmul(numbers, b).to(call.in(0).scalar_type());
  return {call.has_in(4) ? y + call.in(4) : y};
}

Tensors matmul_integer_to_float(const Call& call) {
  const at::Tensor a = centred(call, 0, 4, -2) * placed(call, 2, call.in(0), -2).to(at::kDouble);
  const at::Tensor b = centred(call, 1, 5, -1) * placed(call, 3, call.in(1), -1).to(at::kDouble);
  const at::Tensor y = at::matmul(a, b).to(call.in(3).scalar_type());
  return {call.has_in(6) ? y + call.in(6) : y};
}

Tensors quantised_gemm(const Call& call) {
  const int64_t columns = call.integer("transB", 0) != 0 ? 0 : 1;
  at::Tensor bias;
  if (call.has_in(6)) bias = call.in(6).to(at::kDouble) * call.real("alpha", 1);
  const Tensors operands{centred(call, 0, 2, 0), centred(call, 3, 5, columns), bias};
  const at::Tensor sums = gemm(call.on(operands)).front();
  const at::Tensor scales = call.in(1) * placed(call, 4, sums, -1);
  if (!call.has_in(7)) return {sums.to(at::kFloat) * scales};
  return {rescaled(call, sums, scales, 7, 8)};
}

// Types of a few bits: several in a byte, or as real numbers.

at::Tensor codes_in(const at::Tensor& bytes, int64_t bits) {
  Tensors codes;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    codes.push_back(at::bitwise_and(at::bitwise_right_shift(bytes, shift), (1 << bits) - 1));
  }
  return at::stack(codes, -1).flatten(-2);
}

namespace {

/// Returns zero points [n, c], packed in bytes or as numbers.
at::Tensor zero_points(const Call& call, size_t i, int64_t bits, const at::Tensor& scales) {
  if (!call.has_in(i)) return at::full_like(scales, std::ldexp(1, static_cast<int>(bits) - 1));
  const at::Tensor rows = call.in(i).reshape({scales.size(0), -1});
  if (rows.is_floating_point()) return rows.to(scales.scalar_type());
  return codes_in(rows, bits).narrow(1, 0, scales.size(1)).to(scales.scalar_type());
}

/// Decodes [n, k]: rows of codes in blocks, which may extend beyond k.
at::Tensor real_rows(const Call& call, int64_t bits, int64_t columns) {
  const at::Tensor& bytes = call.in(1);
  const at::Tensor scales = call.in(2).reshape({bytes.size(0), bytes.size(1)});
  const at::Tensor codes = codes_in(bytes, bits).to(scales.scalar_type());  // [n, c, k / c]
  const at::Tensor zeros = zero_points(call, 3, bits, scales).unsqueeze(-1);
  return ((codes - zeros) * scales.unsqueeze(-1)).flatten(1).narrow(1, 0, columns);
}

int64_t bits_of_codes(const Call& call) {
  const int64_t bits = call.integer("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) call.unsupported("codes across bytes are not supported");
  return bits;
}

}  // namespace

Tensors matmul_of_bits(const Call& call) {
  if (call.has_in(4)) call.unsupported("group indices are not supported");
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
  call.unsupported("rounding mode \"" + mode + "\" is not supported");
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
  if (call.inputs.size() > 5) call.unsupported("a scale of its result is not supported");
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

/// How many of its channel's thresholds each element reaches.
/// @source QONNX, MultiThreshold
Tensors multi_threshold(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor& thresholds = call.in(1);
  const int64_t channels = call.text("data_layout", "NCHW").ends_with('C') ? x.dim() - 1 : 1;
  std::vector<int64_t> shape(x.dim() + 1, 1);
  shape[channels] = thresholds.size(0);
  shape.back() = thresholds.size(1);
  const at::Tensor reached = (x.unsqueeze(-1) >= thresholds.reshape(shape)).sum(-1);
  return {(reached * call.real("out_scale", 1) + call.real("out_bias", 0)).to(x.scalar_type())};
}

}  // namespace parsimony::executor
