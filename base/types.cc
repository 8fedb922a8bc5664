#include "parsimony/base/types.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 48;

struct ElementType {
  std::string_view name;
  int64_t bytes;
  int onnx;  // @source TensorProto.DataType of ONNX
  int64_t bits = 8 * bytes;
};

/// In the order of DType.
constexpr std::array<ElementType, 24> kTypes = {{
    {"unknown", 0, 0},         {"float32", 4, 1},     {"float64", 8, 11},
    {"float16", 2, 10},        {"bfloat16", 2, 16},   {"int8", 1, 3},
    {"int16", 2, 5},           {"int32", 4, 6},       {"int64", 8, 7},
    {"uint8", 1, 2},           {"uint16", 2, 4},      {"uint32", 4, 12},
    {"uint64", 8, 13},         {"bool", 1, 9},        {"float8e4m3fn", 1, 17},
    {"float8e4m3fnuz", 1, 18}, {"float8e5m2", 1, 19}, {"float8e5m2fnuz", 1, 20},
    {"float4e2m1", 1, 23, 4},  {"int4", 1, 22, 4},    {"uint4", 1, 21, 4},
    {"int2", 1, 26, 2},        {"uint2", 1, 25, 2},   {"string", 0, 8},
}};
static_assert(kTypes.size() == static_cast<size_t>(DType::kString) + 1);

}  // namespace

int64_t size_of(DType type) { return kTypes[static_cast<size_t>(type)].bytes; }

int64_t bits_of(DType type) { return kTypes[static_cast<size_t>(type)].bits; }

std::string_view name_of(DType type) { return kTypes[static_cast<size_t>(type)].name; }

int onnx_number(DType type) { return kTypes[static_cast<size_t>(type)].onnx; }

DType dtype_of_onnx(int64_t number) {
  const auto* found = std::ranges::find(kTypes, number, &ElementType::onnx);
  return found == kTypes.end() ? DType::kUnknown : static_cast<DType>(found - kTypes.begin());
}

bool is_floating(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat64 || type == DType::kFloat16 ||
         type == DType::kBFloat16 || is_small_float(type);
}

bool is_small_float(DType type) {
  return type >= DType::kFloat8E4M3FN && type <= DType::kFloat4E2M1;
}

bool is_small_integer(DType type) {
  return type == DType::kInt8 || type == DType::kUInt8 ||
         (type >= DType::kInt4 && type <= DType::kUInt2);
}

int64_t element_count(const Shape& shape) {
  const auto negative = [](int64_t dim) { return dim < 0; };
  if (std::any_of(shape.begin(), shape.end(), negative)) {
    throw errors::bad_dimension({}, to_string(shape));
  }
  // Checked for empty tensors too, since loops multiply some of the dimensions.
  int64_t others = 1;
  for (const int64_t dim : shape) {
    if (dim > kMaxElements / others) throw errors::bad_dimension({}, to_string(shape));
    if (dim > 0) others *= dim;
  }
  return std::find(shape.begin(), shape.end(), 0) == shape.end() ? others : 0;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace parsimony
