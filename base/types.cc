#include "parsimony/base/types.h"

#include <algorithm>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 48;

}  // namespace

int64_t size_of(DType type) {
  switch (type) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kUInt8:
      return 1;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
    case DType::kUInt16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUInt32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64:
      return 8;
    case DType::kUnknown:
    case DType::kString:
      return 0;
  }
  return 0;
}

std::string_view name_of(DType type) {
  switch (type) {
    case DType::kUnknown:
      return "unknown";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUInt8:
      return "uint8";
    case DType::kUInt16:
      return "uint16";
    case DType::kUInt32:
      return "uint32";
    case DType::kUInt64:
      return "uint64";
    case DType::kBool:
      return "bool";
    case DType::kString:
      return "string";
  }
  return "unknown";
}

bool is_floating(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat64 || type == DType::kFloat16 ||
         type == DType::kBFloat16;
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
