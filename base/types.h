// Element types, small floats and shapes, and what stays of a shape, that every room shares.
#pragma once

#include <array>
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
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat4E2M1,
  kInt4,
  kUInt4,
  kInt2,
  kUInt2,
  kString,
};

/// Bytes of one element in memory, where those of fewer than 8 bits have a byte each; 0 for unknown
/// and string.
int64_t size_of(DType type);

/// Bits of one element in a file, where elements of fewer than 8 bits share bytes.
int64_t bits_of(DType type);

/// Lower-case name as the tool prints it: "float32", "bfloat16", ….
std::string_view name_of(DType type);

bool is_floating(DType type);

/// Floating point of 8 bits or fewer: see small_floats().
bool is_small_float(DType type);

/// Integers of 8 bits or fewer, of which quantised weights are made.
bool is_small_integer(DType type);

/// The number that ONNX has for it (TensorProto.DataType); 0 for unknown.
int onnx_number(DType type);

/// kUnknown for a number that stands for no type of ours.
DType dtype_of_onnx(int64_t number);

/// Product of the dimensions; 1 for a scalar.
/// @throws ModelError if a dimension is negative or the product of those above 0 exceeds 2^48.
int64_t element_count(const Shape& shape);

/// Strides of a row-major tensor, in elements.
Shape dense_strides(const Shape& dims);

/// "[1, 3, 32, 32]"
std::string to_string(const Shape& shape);

/// The indices that stay along one axis; ascending, counted along the tensor's full length.
struct AxisKeep {
  int axis = 0;
  int64_t size = 0;
  std::vector<int64_t> keep;
};

/// The number that each byte stands for; of a type of 4 bits only the low ones count.
/// @pre is_small_float(type)
/// @source ONNX, "Float stored in 8 bits", "Float stored in 4 bits"
const std::array<float, 256>& small_floats(DType type);

/// The byte of the nearest number, of the even one half way between two; beyond the largest that of
/// the largest. @pre is_small_float(type)
uint8_t nearest_small_float(DType type, double value);

}  // namespace parsimony
