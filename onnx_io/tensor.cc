#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/slice.h"
#include "parsimony/onnx_io/embedded_impl.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {

int64_t file_bytes(DType dtype, int64_t count) {
  return is_packed(dtype) ? (count * bits_of(dtype) + 7) / 8 : count * size_of(dtype);
}

std::vector<std::byte> unpacked(const std::byte* data, int64_t stride, DType dtype, int64_t count) {
  const auto bits = static_cast<int>(bits_of(dtype));
  const int64_t each = 8 / bits;
  const bool is_signed = dtype == DType::kInt4 || dtype == DType::kInt2;
  const int mask = (1 << bits) - 1;
  const int sign = is_signed ? 1 << (bits - 1) : 0;
  std::vector<std::byte> elements(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto shared = std::to_integer<int>(data[i / each * stride]);
    const int code = shared >> (i % each * bits) & mask;
    elements[i] = static_cast<std::byte>((code ^ sign) - sign);
  }
  return elements;
}

std::vector<std::byte> packed(std::span<const std::byte> elements, DType dtype) {
  const auto bits = static_cast<size_t>(bits_of(dtype));
  const size_t each = 8 / bits;
  const auto mask = static_cast<std::byte>((1U << bits) - 1);
  std::vector<std::byte> bytes(file_bytes(dtype, std::ssize(elements)));
  for (size_t i = 0; i < elements.size(); ++i) {
    bytes[i / each] |= (elements[i] & mask) << (i % each * bits);
  }
  return bytes;
}

namespace {

ModelError wrong_data_size(std::string_view tensor, std::string_view dims, std::string_view dtype,
                           int64_t expected_bytes, int64_t found_bytes) {
  return ModelError("tensor ", in_quotes(tensor), ": wrong dims: ", dims, " of ", dtype, " need ",
                    expected_bytes, " bytes of data, found ", found_bytes);
}

using google::protobuf::RepeatedField;
using onnx::TensorProto;

/// Calls `use` with the field that has the elements if there are no raw bytes.
template <typename Use>
auto with_typed_field(const TensorProto& tensor, const Use& use) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return use(tensor.float_data());
    case TensorProto::INT64:
      return use(tensor.int64_data());
    case TensorProto::DOUBLE:
      return use(tensor.double_data());
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return use(tensor.uint64_data());
    default:
      return use(tensor.int32_data());
  }
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
    throw ModelError("tensor ", in_quotes(tensor.name()), ": external data: ", key, " ",
                     in_quotes(*text), " is not a number of bytes");
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

/// Returns the bytes that the dims require; empty for types of unknown size.
std::optional<int64_t> expected_bytes(const std::string& name, const TensorProto& tensor) {
  const DType dtype = dtype_of_onnx(tensor.data_type());
  if (size_of(dtype) == 0) return std::nullopt;
  return file_bytes(dtype, checked_count(name, dims_of(tensor)));
}

ModelError wrong_size(const TensorProto& tensor, const std::string& name, int64_t expected,
                      int64_t found) {
  return wrong_data_size(name, to_string(dims_of(tensor)),
                         name_of(dtype_of_onnx(tensor.data_type())), expected, found);
}

}  // namespace

Shape dims_of(const TensorProto& tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

Field field_of(TensorProto& tensor) {
  const Numbers numbers = numbers_of(tensor);
  if (tensor.has_raw_data() &&
      numbers.data == reinterpret_cast<const std::byte*>(tensor.raw_data().data())) {
    return tensor.mutable_raw_data();
  }
  return with_typed_field(tensor, []<typename T>(const RepeatedField<T>& field) -> Field {
    return const_cast<RepeatedField<T>*>(&field);  // of `tensor`, which is not const
  });
}

Numbers numbers_of(const TensorProto& tensor) {
  const Numbers numbers = with_typed_field(tensor, []<typename T>(const RepeatedField<T>& field) {
    return Numbers{reinterpret_cast<const std::byte*>(field.data()), sizeof(T),
                   static_cast<int64_t>(sizeof(T)) * field.size()};
  });
  if (!tensor.has_raw_data() || numbers.bytes > 0) return numbers;
  return {reinterpret_cast<const std::byte*>(tensor.raw_data().data()),
          size_of(dtype_of_onnx(tensor.data_type())),
          static_cast<int64_t>(tensor.raw_data().size())};
}

FieldElements elements_of(const Field& field, DType dtype) {
  return std::visit(
      [&](auto* holder) -> FieldElements {
        if constexpr (std::is_same_v<decltype(holder), std::string*>) {
          return {reinterpret_cast<std::byte*>(holder->data()), size_of(dtype)};
        } else {
          return {reinterpret_cast<std::byte*>(holder->mutable_data()), sizeof(*holder->data())};
        }
      },
      field);
}

void slice_field(const Field& field, DType dtype, const Shape& dims,
                 std::span<const AxisKeep> axes) {
  const auto [data, stride] = elements_of(field, dtype);
  slice(data, dims, stride, axes, data);
  const int64_t kept = element_count(sliced(dims, axes));
  std::visit(
      [&, stride = stride](auto* holder) {
        if constexpr (std::is_same_v<decltype(holder), std::string*>) {
          holder->resize(kept * stride);
        } else {
          holder->Truncate(static_cast<int>(kept));
        }
      },
      field);
}

bool is_external(const TensorProto& tensor) {
  return tensor.data_location() == TensorProto::EXTERNAL;
}

bool is_embedded(const TensorProto& tensor) {
  return is_external(tensor) && entry(tensor, "location") == kOwnFile;
}

ExternalData::Range external_range(const TensorProto& tensor, ExternalData& files) {
  const std::optional<int64_t> expected = expected_bytes(tensor.name(), tensor);
  const int64_t length = number_entry(tensor, "length", -1);
  if (expected && length >= 0 && length != *expected) {
    throw wrong_size(tensor, tensor.name(), *expected, length);
  }
  return files.locate(tensor.name(), entry(tensor, "location").value_or(""),
                      number_entry(tensor, "offset", 0), expected.value_or(length));
}

Weight view_of(const TensorProto& tensor, const std::string& name, ExternalData& files) {
  Weight weight;
  weight.name = name;
  weight.dtype = dtype_of_onnx(tensor.data_type());
  weight.dims = dims_of(tensor);
  const int64_t size = size_of(weight.dtype);
  if (is_external(tensor)) {
    weight.data = external_range(tensor, files).data;
    weight.stride = size;
    return weight;
  }
  const Numbers numbers = numbers_of(tensor);
  const int64_t expected = file_bytes(weight.dtype, checked_count(name, weight.dims));
  const int64_t found = numbers.stride == 0 ? 0 : numbers.bytes / numbers.stride * size;
  const bool whole = numbers.stride == 0 || numbers.bytes % numbers.stride == 0;
  if (found != expected || !whole) {
    throw wrong_size(tensor, name, expected, whole ? found : numbers.bytes);
  }
  weight.data = numbers.data;
  weight.stride = numbers.stride;
  return weight;
}

std::vector<std::byte> unpacked(const TensorProto& tensor, const std::string& name,
                                ExternalData& files) {
  const Weight shared = view_of(tensor, name, files);
  return unpacked(shared.data, shared.stride, shared.dtype, shared.count());
}

void set_raw(TensorProto& tensor, std::span<const std::byte> elements) {
  const DType dtype = dtype_of_onnx(tensor.data_type());
  tensor.clear_int32_data();
  if (!is_packed(dtype)) return tensor.set_raw_data(elements.data(), elements.size());
  const std::vector<std::byte> bytes = packed(elements, dtype);
  tensor.set_raw_data(bytes.data(), bytes.size());
}

TensorProto with_elements(TensorProto tensor, ExternalData& files) {
  if (!is_embedded(tensor)) return tensor;
  const ExternalData::Range range = external_range(tensor, files);
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(range.data, range.bytes);
  return tensor;
}

namespace {

void append_float(std::string& raw, DType dtype, double number) {
  std::byte bytes[sizeof(double)];
  write_number(number, dtype, bytes);
  raw.append(reinterpret_cast<const char*>(bytes), size_of(dtype));
}

}  // namespace

onnx::TensorProto tensor_of(const std::string& name, const HostTensor& constant) {
  if (size_of(constant.dtype) == 0) throw errors::not_numbers(name, name_of(constant.dtype));
  const int64_t bytes = element_count(constant.dims) * size_of(constant.dtype);
  std::string raw;
  for (const double number : constant.floats) append_float(raw, constant.dtype, number);
  for (const int64_t number : constant.ints) {  // little-endian: the low bytes
    raw.append(reinterpret_cast<const char*>(&number), size_of(constant.dtype));
  }
  if (static_cast<int64_t>(raw.size()) != bytes) {
    throw wrong_data_size(name, to_string(constant.dims), name_of(constant.dtype), bytes,
                          static_cast<int64_t>(raw.size()));
  }
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx_number(constant.dtype));
  for (const int64_t dim : constant.dims) tensor.add_dims(dim);
  if (is_packed(constant.dtype)) {
    set_raw(tensor, std::as_bytes(std::span(raw)));
  } else {
    tensor.set_raw_data(std::move(raw));
  }
  return tensor;
}

namespace {

using Visit = std::function<void(onnx::TensorProto&)>;

void walk_graph(onnx::GraphProto& graph, const Visit& visit);

void walk_nodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const Visit& visit) {
  for (onnx::NodeProto& node : nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) visit(*attribute.mutable_t());
      for (onnx::TensorProto& tensor : *attribute.mutable_tensors()) visit(tensor);
    }
    for_each_body(node,
                  [&](const std::string&, onnx::GraphProto& body) { walk_graph(body, visit); });
  }
}

void walk_graph(onnx::GraphProto& graph, const Visit& visit) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) visit(tensor);
  for (onnx::SparseTensorProto& sparse : *graph.mutable_sparse_initializer()) {
    if (sparse.has_values()) visit(*sparse.mutable_values());
    if (sparse.has_indices()) visit(*sparse.mutable_indices());
  }
  walk_nodes(*graph.mutable_node(), visit);
}

}  // namespace

void for_each_tensor(onnx::ModelProto& model, const Visit& visit) {
  if (model.has_graph()) walk_graph(*model.mutable_graph(), visit);
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    walk_nodes(*function.mutable_node(), visit);
  }
  for (onnx::TrainingInfoProto& training : *model.mutable_training_info()) {
    if (training.has_initialization()) walk_graph(*training.mutable_initialization(), visit);
    if (training.has_algorithm()) walk_graph(*training.mutable_algorithm(), visit);
  }
}

}  // namespace parsimony::onnx_io
