// Element types and shapes that every room shares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

using Shape = std::vector<int64_t>;

/// Element type of a tensor. Names follow the ONNX specification.
enum class DType : uint8_t {
  kUnknown,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
  kString,
};

/// Bytes of one element; 0 for unknown and string.
int64_t size_of(DType type);

/// Lower-case name as the tool prints it: "float32", "bfloat16", ….
std::string_view name_of(DType type);

bool is_floating(DType type);

/// The number that ONNX has for it (TensorProto.DataType); 0 for unknown.
int onnx_number(DType type);

/// kUnknown for a number that stands for no type of ours.
DType dtype_of_onnx(int64_t number);

/// Product of the dimensions; 1 for a scalar.
/// @throws ModelError if a dimension is negative or the product of those above 0 exceeds 2^48.
int64_t element_count(const Shape& shape);

/// "[1, 3, 32, 32]"
std::string to_string(const Shape& shape);

}  // namespace parsimony
