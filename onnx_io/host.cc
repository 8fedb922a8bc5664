#include <cmath>
#include <cstring>

#include "parsimony/graph/errors.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/host_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

template <typename T>
void append(std::string& raw, T number) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &number, sizeof(T));
  raw.append(bytes, sizeof(T));
}

/// Rounds to a float with `exponent_bits` and `mantissa_bits`, ties to even: float16, bfloat16.
uint16_t narrow(double number, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
  const int sign = std::signbit(number) ? 1 << 15 : 0;
  if (std::isnan(number)) return static_cast<uint16_t>(sign | infinity | 1 << (mantissa_bits - 1));
  const double magnitude = std::fabs(number);
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int lowest = 1 - bias;  // below it the spacing no longer shrinks
  const int scale = magnitude == 0.0 ? lowest : std::max(exponent - 1, lowest);
  // The mantissa with its leading one; a carry into the exponent is right as it falls.
  const auto mantissa =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, mantissa_bits - scale)));
  const int bits = mantissa + ((scale - lowest) << mantissa_bits);
  return static_cast<uint16_t>(sign | std::min(bits, infinity));
}

void append_float(std::string& raw, DType dtype, double number) {
  switch (dtype) {
    case DType::kFloat64:
      append(raw, number);
      break;
    case DType::kFloat16:
      append(raw, narrow(number, 5, 10));
      break;
    case DType::kBFloat16:
      append(raw, narrow(number, 8, 7));
      break;
    default:
      append(raw, static_cast<float>(number));
  }
}

void append_int(std::string& raw, DType dtype, int64_t number) {
  switch (size_of(dtype)) {
    case 1:
      append(raw, static_cast<int8_t>(number));
      break;
    case 2:
      append(raw, static_cast<int16_t>(number));
      break;
    case 4:
      append(raw, static_cast<int32_t>(number));
      break;
    default:
      append(raw, number);
  }
}

}  // namespace

onnx::TensorProto tensor_of(const std::string& name, const HostTensor& constant) {
  if (size_of(constant.dtype) == 0) throw errors::not_numbers(name, name_of(constant.dtype));
  const int64_t bytes = element_count(constant.dims) * size_of(constant.dtype);
  std::string raw;
  for (const double number : constant.floats) append_float(raw, constant.dtype, number);
  for (const int64_t number : constant.ints) append_int(raw, constant.dtype, number);
  if (static_cast<int64_t>(raw.size()) != bytes) {
    throw errors::wrong_data_size(name, to_string(constant.dims), name_of(constant.dtype), bytes,
                                  static_cast<int64_t>(raw.size()));
  }
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(data_type_of(constant.dtype));
  for (const int64_t dim : constant.dims) tensor.add_dims(dim);
  tensor.set_raw_data(std::move(raw));
  return tensor;
}

}  // namespace parsimony::onnx_io
