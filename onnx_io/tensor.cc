#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/slice.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

using onnx::TensorProto;

constexpr std::pair<int32_t, DType> kTypes[] = {
    {TensorProto::FLOAT, DType::kFloat32},     {TensorProto::UINT8, DType::kUInt8},
    {TensorProto::INT8, DType::kInt8},         {TensorProto::UINT16, DType::kUInt16},
    {TensorProto::INT16, DType::kInt16},       {TensorProto::INT32, DType::kInt32},
    {TensorProto::INT64, DType::kInt64},       {TensorProto::BOOL, DType::kBool},
    {TensorProto::FLOAT16, DType::kFloat16},   {TensorProto::DOUBLE, DType::kFloat64},
    {TensorProto::UINT32, DType::kUInt32},     {TensorProto::UINT64, DType::kUInt64},
    {TensorProto::BFLOAT16, DType::kBFloat16}, {TensorProto::STRING, DType::kString},
};

template <typename T>
Numbers numbers_in(const google::protobuf::RepeatedField<T>& field) {
  return {reinterpret_cast<const std::byte*>(field.data()), sizeof(T),
          static_cast<int64_t>(sizeof(T)) * field.size()};
}

std::optional<std::string> entry(const TensorProto& tensor, std::string_view key) {
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == key) return entry.value();
  }
  return std::nullopt;
}

/// @throws ModelError
int64_t number_entry(const TensorProto& tensor, std::string_view key, int64_t fallback) {
  const std::optional<std::string> text = entry(tensor, key);
  if (!text) return fallback;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number < 0) {
    throw errors::bad_entry(tensor.name(), key, *text);
  }
  return number;
}

/// @throws ModelError with the tensor's name
int64_t checked_count(const std::string& name, const Shape& dims) {
  try {
    return element_count(dims);
  } catch (const ModelError&) {
    throw errors::bad_dimension(name, to_string(dims));
  }
}

/// What the dims need; empty for types of which we do not know the size.
std::optional<int64_t> wanted_bytes(const std::string& name, const TensorProto& tensor) {
  const int64_t size = size_of(dtype_of(tensor.data_type()));
  if (size == 0) return std::nullopt;
  return checked_count(name, dims_of(tensor)) * size;
}

ModelError wrong_size(const TensorProto& tensor, const std::string& name, int64_t wanted,
                      int64_t found) {
  return errors::wrong_data_size(name, to_string(dims_of(tensor)),
                                 name_of(dtype_of(tensor.data_type())), wanted, found);
}

}  // namespace

DType dtype_of(int32_t data_type) {
  for (const auto& [code, dtype] : kTypes) {
    if (code == data_type) return dtype;
  }
  return DType::kUnknown;
}

int32_t data_type_of(DType wanted) {
  for (const auto& [code, dtype] : kTypes) {
    if (dtype == wanted) return code;
  }
  return TensorProto::UNDEFINED;
}

Shape dims_of(const TensorProto& tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

Field field_of(TensorProto& tensor) {
  const Numbers numbers = numbers_of(tensor);
  if (tensor.has_raw_data() &&
      numbers.data == reinterpret_cast<const std::byte*>(tensor.raw_data().data())) {
    return tensor.mutable_raw_data();
  }
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return tensor.mutable_float_data();
    case TensorProto::INT64:
      return tensor.mutable_int64_data();
    case TensorProto::DOUBLE:
      return tensor.mutable_double_data();
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return tensor.mutable_uint64_data();
    default:
      return tensor.mutable_int32_data();
  }
}

Numbers numbers_of(const TensorProto& tensor) {
  Numbers numbers;
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      numbers = numbers_in(tensor.float_data());
      break;
    case TensorProto::INT64:
      numbers = numbers_in(tensor.int64_data());
      break;
    case TensorProto::DOUBLE:
      numbers = numbers_in(tensor.double_data());
      break;
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      numbers = numbers_in(tensor.uint64_data());
      break;
    default:
      numbers = numbers_in(tensor.int32_data());
  }
  if (!tensor.has_raw_data() || numbers.bytes > 0) return numbers;
  return {reinterpret_cast<const std::byte*>(tensor.raw_data().data()),
          size_of(dtype_of(tensor.data_type())), static_cast<int64_t>(tensor.raw_data().size())};
}

void slice_field(const Field& field, const Shape& dims, int64_t count,
                 std::span<const AxisKeep> axes) {
  const int64_t kept = element_count(sliced(dims, axes));
  std::visit(
      [&](auto* holder) {
        if constexpr (std::is_same_v<decltype(holder), std::string*>) {
          const int64_t stride = count == 0 ? 0 : static_cast<int64_t>(holder->size()) / count;
          auto* data = reinterpret_cast<std::byte*>(holder->data());
          slice(data, dims, stride, axes, data);
          holder->resize(kept * stride);
        } else {
          auto* data = reinterpret_cast<std::byte*>(holder->mutable_data());
          slice(data, dims, sizeof(*holder->data()), axes, data);
          holder->Truncate(static_cast<int>(kept));
        }
      },
      field);
}

std::byte* mutable_data(const Field& field) {
  return std::visit(
      [](auto* holder) -> std::byte* {
        if constexpr (std::is_same_v<decltype(holder), std::string*>) {
          return reinterpret_cast<std::byte*>(holder->data());
        } else {
          return reinterpret_cast<std::byte*>(holder->mutable_data());
        }
      },
      field);
}

int64_t stride_of(const Field& field, DType dtype) {
  return std::visit(
      [&](auto* holder) -> int64_t {
        if constexpr (std::is_same_v<decltype(holder), std::string*>) {
          return size_of(dtype);
        } else {
          return sizeof(*holder->data());
        }
      },
      field);
}

bool is_external(const TensorProto& tensor) {
  return tensor.data_location() == TensorProto::EXTERNAL;
}

ExternalData::Range external_range(const TensorProto& tensor, ExternalData& files) {
  const std::optional<int64_t> wanted = wanted_bytes(tensor.name(), tensor);
  const int64_t length = number_entry(tensor, "length", -1);
  if (wanted && length >= 0 && length != *wanted) {
    throw wrong_size(tensor, tensor.name(), *wanted, length);
  }
  return files.locate(tensor.name(), entry(tensor, "location").value_or(""),
                      number_entry(tensor, "offset", 0), wanted.value_or(length));
}

Weight view_of(const TensorProto& tensor, const std::string& name, ExternalData& files) {
  Weight weight;
  weight.name = name;
  weight.dtype = dtype_of(tensor.data_type());
  weight.dims = dims_of(tensor);
  const int64_t size = size_of(weight.dtype);
  if (is_external(tensor)) {
    weight.data = external_range(tensor, files).data;
    weight.stride = size;
    return weight;
  }
  const Numbers numbers = numbers_of(tensor);
  const int64_t count = checked_count(name, weight.dims);
  const int64_t found = numbers.stride == 0 ? 0 : numbers.bytes / numbers.stride * size;
  const bool whole = numbers.stride == 0 || numbers.bytes % numbers.stride == 0;
  if (found != count * size || !whole) {
    throw wrong_size(tensor, name, count * size, whole ? found : numbers.bytes);
  }
  weight.data = numbers.data;
  weight.stride = numbers.stride;
  return weight;
}

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
