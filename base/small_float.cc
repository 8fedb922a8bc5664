#include "parsimony/base/small_float.h"

#include <cmath>
#include <limits>

namespace parsimony {
namespace {

/// What the codes at the end stand for.
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
