// |x| of the elements of a weight of any type, and the smallest of them. Kernels are templates over
// the readers of elements, so that the compiler can vectorise the loop for each type.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

namespace magnitude {

/// Weights need not be aligned: they point into a file.
template <typename T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

struct Float32 {
  static constexpr int64_t kBytes = 4;
  static double at(const std::byte* p) { return std::fabs(static_cast<double>(load<float>(p))); }
};

struct Float64 {
  static constexpr int64_t kBytes = 8;
  static double at(const std::byte* p) { return std::fabs(load<double>(p)); }
};

struct Float16 {
  static constexpr int64_t kBytes = 2;
  static double at(const std::byte* p) {
    // Shifting exponent and mantissa into place leaves a factor of 2^112; the multiplication also
    // normalises what was subnormal. Branch-free, unlike Eigen::half.
    const uint32_t bits = static_cast<uint32_t>(load<uint16_t>(p)) & 0x7fffU;
    const float scaled = std::bit_cast<float>(bits << 13) * 0x1p112F;
    const uint32_t special = bits >= 0x7c00U ? 0x7f800000U : 0U;
    return static_cast<double>(std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special));
  }
};

struct BFloat16 {
  static constexpr int64_t kBytes = 2;
  static double at(const std::byte* p) {
    const uint32_t bits = static_cast<uint32_t>(load<uint16_t>(p)) & 0x7fffU;
    return static_cast<double>(std::bit_cast<float>(bits << 16));
  }
};

struct Int8 {
  static constexpr int64_t kBytes = 1;
  static double at(const std::byte* p) { return std::fabs(static_cast<double>(load<int8_t>(p))); }
};

struct UInt8 {
  static constexpr int64_t kBytes = 1;
  static double at(const std::byte* p) { return static_cast<double>(load<uint8_t>(p)); }
};

struct Int16 {
  static constexpr int64_t kBytes = 2;
  static double at(const std::byte* p) { return std::fabs(static_cast<double>(load<int16_t>(p))); }
};

struct UInt16 {
  static constexpr int64_t kBytes = 2;
  static double at(const std::byte* p) { return static_cast<double>(load<uint16_t>(p)); }
};

template <DType kType>
struct SmallFloat {
  static constexpr int64_t kBytes = 1;
  static double at(const std::byte* p) {
    return std::fabs(static_cast<double>(small_floats(kType)[load<uint8_t>(p)]));
  }
};

}  // namespace magnitude

/// Whether weights of this type are scored: floating point and integers up to 16 bits.
bool has_magnitude(DType type);

/// Calls `use` with the reader of the weight's type: `use(magnitude::Float32{})`.
/// @throws UnsupportedError if the type has no magnitude
template <typename Use>
auto visit_magnitude(const Weight& weight, Use&& use) {
  switch (weight.dtype) {
    case DType::kFloat32:
      return use(magnitude::Float32{});
    case DType::kFloat64:
      return use(magnitude::Float64{});
    case DType::kFloat16:
      return use(magnitude::Float16{});
    case DType::kBFloat16:
      return use(magnitude::BFloat16{});
    case DType::kInt2:
    case DType::kInt4:
    case DType::kInt8:
      return use(magnitude::Int8{});
    case DType::kUInt2:
    case DType::kUInt4:
    case DType::kUInt8:
      return use(magnitude::UInt8{});
    case DType::kInt16:
      return use(magnitude::Int16{});
    case DType::kUInt16:
      return use(magnitude::UInt16{});
    case DType::kFloat8E4M3FN:
      return use(magnitude::SmallFloat<DType::kFloat8E4M3FN>{});
    case DType::kFloat8E4M3FNUZ:
      return use(magnitude::SmallFloat<DType::kFloat8E4M3FNUZ>{});
    case DType::kFloat8E5M2:
      return use(magnitude::SmallFloat<DType::kFloat8E5M2>{});
    case DType::kFloat8E5M2FNUZ:
      return use(magnitude::SmallFloat<DType::kFloat8E5M2FNUZ>{});
    case DType::kFloat4E2M1:
      return use(magnitude::SmallFloat<DType::kFloat4E2M1>{});
    default:
      throw UnsupportedError("tensor ", in_quotes(weight.name), ": elements of type ",
                             name_of(weight.dtype),
                             " are not ranked; expected floating point or 8-bit integers");
  }
}

/// @throws ModelError naming the first element that is not a number, if there is one
void reject_nan(const Weight& weight);

/// The threshold below which the smallest elements lie.
struct MagnitudeThreshold {
  double magnitude = 0;  ///< every element below it is selected
  int64_t equal = 0;     ///< and so are this many of the elements equal to it, in order
};

/// The threshold below which `count` elements of the weights lie, ranked together. `count` is
/// between 1 and their total number of elements.
/// @throws ModelError for a NaN, UnsupportedError for a type that has no magnitude
MagnitudeThreshold find_threshold(std::span<const Weight* const> weights, int64_t count);

/// Counts how many of the `count` smallest elements lie in each weight; ties go to the earlier one.
/// @throws as find_threshold
std::vector<int64_t> count_smallest(std::span<const Weight* const> weights, int64_t count);

// The two algorithms: by sampling, which reads every element once, and by radix histograms of all
// elements.

/// Finds the threshold by a sample. Empty if that misled: rare unless the weights are adversarial.
std::optional<MagnitudeThreshold> threshold_by_sample(std::span<const Weight* const> weights,
                                                      int64_t count);

/// Finds the threshold as find_threshold does, by histograms.
MagnitudeThreshold threshold_by_histogram(std::span<const Weight* const> weights, int64_t count);

}  // namespace parsimony
