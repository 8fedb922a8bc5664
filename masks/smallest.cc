#include "parsimony/masks/smallest.h"

#include <algorithm>
#include <array>
#include <bit>

#include "parsimony/masks/magnitude.h"
#include "parsimony/masks/smallest_impl.h"

namespace parsimony {
namespace {

// The bits of a non-negative double order as the number does. 63 of them are read in four digits.
constexpr std::array<int, 4> kShifts = {47, 31, 15, 0};
constexpr std::array<int, 4> kWidths = {16, 16, 16, 15};
constexpr uint64_t kInfinity = 0x7ff0000000000000U;

uint64_t digit_of(uint64_t key, size_t pass) {
  return (key >> kShifts[pass]) & ((uint64_t{1} << kWidths[pass]) - 1);
}

// Counts the digit of every element whose more significant digits are those of `prefix`.
void add_digits(const Weight& weight, size_t pass, uint64_t prefix,
                std::vector<int64_t>& histogram) {
  const int known = kShifts[pass] + kWidths[pass];
  uint64_t largest = 0;
  visit_magnitude(weight, [&]<typename Source>(Source) {
    const int64_t count = weight.count();
    for (int64_t i = 0; i < count; ++i) {
      const auto key = std::bit_cast<uint64_t>(Source::at(weight.data + i * weight.stride));
      largest = std::max(largest, key);
      if (key >> known == prefix >> known) ++histogram[digit_of(key, pass)];
    }
  });
  if (largest > kInfinity) reject_nan(weight);
}

struct Tally {
  int64_t below = 0;
  int64_t equal = 0;
};

Tally tally(const Weight& weight, double threshold) {
  Tally result;
  visit_magnitude(weight, [&]<typename Source>(Source) {
    const int64_t count = weight.count();
    for (int64_t i = 0; i < count; ++i) {
      const double x = Source::at(weight.data + i * weight.stride);
      result.below += x < threshold ? 1 : 0;
      result.equal += x == threshold ? 1 : 0;
    }
  });
  return result;
}

}  // namespace

MagnitudeThreshold threshold_by_histogram(std::span<const Weight* const> weights, int64_t count) {
  // As doubles, all other types end in 29 zeros: the last digit is 0.
  const bool doubles = std::ranges::any_of(
      weights, [](const Weight* weight) { return weight->dtype == DType::kFloat64; });
  const size_t passes = doubles ? kShifts.size() : kShifts.size() - 1;
  uint64_t key = 0;
  int64_t left = count;
  for (size_t pass = 0; pass < passes; ++pass) {
    std::vector<int64_t> histogram(size_t{1} << kWidths[pass]);
    for (const Weight* weight : weights) add_digits(*weight, pass, key, histogram);
    size_t digit = 0;
    while (digit + 1 < histogram.size() && histogram[digit] < left) left -= histogram[digit++];
    key |= static_cast<uint64_t>(digit) << kShifts[pass];
  }
  return {std::bit_cast<double>(key), left};
}

MagnitudeThreshold find_threshold(std::span<const Weight* const> weights, int64_t count) {
  const std::optional<MagnitudeThreshold> threshold = threshold_by_sample(weights, count);
  return threshold ? *threshold : threshold_by_histogram(weights, count);
}

std::vector<int64_t> count_smallest(std::span<const Weight* const> weights, int64_t count) {
  std::vector<int64_t> result(weights.size());
  if (count <= 0) return result;
  MagnitudeThreshold threshold = find_threshold(weights, count);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tally found = tally(*weights[i], threshold.magnitude);
    const int64_t taken = std::min(found.equal, threshold.equal);
    threshold.equal -= taken;
    result[i] = found.below + taken;
  }
  return result;
}

}  // namespace parsimony
