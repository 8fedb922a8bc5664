#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

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

}  // namespace parsimony::onnx_io
