#include "parsimony/base/types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

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

Shape dense_strides(const Shape& dims) {
  Shape strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * std::max<int64_t>(dims[d], 1);
  }
  return strides;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

namespace {

/// The meaning of the codes at the end.
enum class Specials : uint8_t {
  kInfinity,     ///< as in IEEE 754: infinity and NaN have the largest exponent
  kOneNan,       ///< the largest code alone is NaN
  kNegativeNan,  ///< what would be -0 is NaN
  kNone,
};

struct Format {
  int mantissa_bits;
  int bias;
  int bits;
  Specials specials;
};

Format format_of(DType type) {
  switch (type) {
    case DType::kFloat8E4M3FN:
      return {3, 7, 8, Specials::kOneNan};
    case DType::kFloat8E4M3FNUZ:
      return {3, 8, 8, Specials::kNegativeNan};
    case DType::kFloat8E5M2:
      return {2, 15, 8, Specials::kInfinity};
    case DType::kFloat8E5M2FNUZ:
      return {2, 16, 8, Specials::kNegativeNan};
    default:
      return {1, 1, 4, Specials::kNone};
  }
}

float decoded(const Format& format, int code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const int sign = 1 << (format.bits - 1);
  const int magnitude = code & (sign - 1);
  const bool negative = (code & sign) != 0;
  if (format.specials == Specials::kNegativeNan && negative && magnitude == 0) return kNan;
  if (format.specials == Specials::kOneNan && magnitude == sign - 1) return kNan;
  const int exponent = magnitude >> format.mantissa_bits;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  const bool largest = exponent == (sign - 1) >> format.mantissa_bits;
  if (format.specials == Specials::kInfinity && largest && mantissa != 0) return kNan;
  float value =
      std::ldexp(static_cast<float>(mantissa + (exponent > 0 ? 1 << format.mantissa_bits : 0)),
                 std::max(exponent, 1) - format.bias - format.mantissa_bits);
  if (format.specials == Specials::kInfinity && largest) {
    value = std::numeric_limits<float>::infinity();
  }
  return negative ? -value : value;
}

std::array<float, 256> table_of(DType type) {
  const Format format = format_of(type);
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) {
    table[static_cast<size_t>(code)] = decoded(format, code & ((1 << format.bits) - 1));
  }
  return table;
}

}  // namespace

const std::array<float, 256>& small_floats(DType type) {
  static const std::array tables = {table_of(DType::kFloat8E4M3FN),
                                    table_of(DType::kFloat8E4M3FNUZ), table_of(DType::kFloat8E5M2),
                                    table_of(DType::kFloat8E5M2FNUZ), table_of(DType::kFloat4E2M1)};
  const auto first = static_cast<size_t>(DType::kFloat8E4M3FN);
  return tables.at(static_cast<size_t>(type) - first);
}

uint8_t nearest_small_float(DType type, double value) {
  const std::array<float, 256>& table = small_floats(type);
  const int sign = 1 << (format_of(type).bits - 1);
  const double magnitude = std::fabs(value);
  int nearest = 0;
  for (int code = 1; code < sign; ++code) {
    const double there = static_cast<double>(table[static_cast<size_t>(code)]);
    if (std::isnan(value) && std::isnan(there)) return static_cast<uint8_t>(code);
    if (!std::isfinite(there)) break;
    const double known = static_cast<double>(table[static_cast<size_t>(nearest)]);
    const double closer = std::fabs(there - magnitude) - std::fabs(known - magnitude);
    if (closer < 0 || (closer == 0 && code % 2 == 0)) nearest = code;
  }
  if (std::isnan(value)) return static_cast<uint8_t>(sign);  // where -0 would be
  const bool negative = std::signbit(value) && table[static_cast<size_t>(sign)] == 0;
  return static_cast<uint8_t>(nearest |
                              (std::signbit(value) && (nearest > 0 || negative) ? sign : 0));
}

}  // namespace parsimony
