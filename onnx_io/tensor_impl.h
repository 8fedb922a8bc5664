// Access to the elements of a TensorProto, wherever it stores them.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/onnx_io/external_data.h"

namespace parsimony::onnx_io {

/// Returns whether elements have fewer than 8 bits and share bytes in a file. In memory each has
/// its own byte, so that they are sliced like bytes.
/// @source ONNX, "4 bit integer types": the first element lies in the lowest bits
inline bool is_packed(DType dtype) { return bits_of(dtype) < 8 * size_of(dtype); }

/// Returns the number of bytes that `count` elements take in a file.
int64_t file_bytes(DType dtype, int64_t count);

/// Unpacks elements to one byte each, sign-extended. @param stride  distance of the shared bytes
std::vector<std::byte> unpacked(const std::byte* data, int64_t stride, DType dtype, int64_t count);

/// The inverse of unpacked().
std::vector<std::byte> packed(std::span<const std::byte> elements, DType dtype);

Shape dims_of(const onnx::TensorProto& tensor);

/// Elements in a message. `stride` is their distance in bytes.
struct Numbers {
  const std::byte* data = nullptr;
  int64_t stride = 0;
  int64_t bytes = 0;
};

/// The field with the elements of a tensor or of a Constant's list attribute.
using Field = std::variant<
    std::string*, google::protobuf::RepeatedField<float>*,
    google::protobuf::RepeatedField<int32_t>*, google::protobuf::RepeatedField<int64_t>*,
    google::protobuf::RepeatedField<double>*, google::protobuf::RepeatedField<uint64_t>*>;

/// Returns the field of a tensor, which must have its elements in the message.
Field field_of(onnx::TensorProto& tensor);
Numbers numbers_of(const onnx::TensorProto& tensor);

/// The position of the elements: the address of the first, and their distance in bytes.
struct FieldElements {
  std::byte* data = nullptr;
  int64_t stride = 0;
};
FieldElements elements_of(const Field& field, DType dtype);

/// Slices in place: new memory would cost more than the copy itself.
void slice_field(const Field& field, DType dtype, const Shape& dims,
                 std::span<const AxisKeep> axes);

/// Returns whether the elements are in a file; it may be the model's own.
bool is_external(const onnx::TensorProto& tensor);
/// Returns whether that is the model's own.
bool is_embedded(const onnx::TensorProto& tensor);

/// Returns the bytes of an external tensor; for known types, exactly as many as its dims require.
/// @throws ModelError, IoError
ExternalData::Range external_range(const onnx::TensorProto& tensor, ExternalData& files);

/// Returns a view of the tensor under `name`; of a packed tensor, a view of the shared bytes.
/// @throws ModelError if dims and data disagree.
Weight view_of(const onnx::TensorProto& tensor, const std::string& name, ExternalData& files);

/// Returns the elements of a packed tensor, one in each byte. @throws ModelError like `view_of`
std::vector<std::byte> unpacked(const onnx::TensorProto& tensor, const std::string& name,
                                ExternalData& files);

/// Replaces the elements, which are packed if their type is. Does not change the dims.
void set_raw(onnx::TensorProto& tensor, std::span<const std::byte> elements);

/// Returns the tensor with its elements, also of those that are in the model's own file.
onnx::TensorProto with_elements(onnx::TensorProto tensor, ExternalData& files);

/// Visits every tensor of the model: initializers, attributes, subgraphs, functions.
void for_each_tensor(onnx::ModelProto& model, const std::function<void(onnx::TensorProto&)>& visit);

/// Converts to raw data. @throws UnsupportedError for strings; ModelError if dims do not fit.
onnx::TensorProto tensor_of(const std::string& name, const HostTensor& constant);

}  // namespace parsimony::onnx_io
