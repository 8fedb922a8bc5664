#include "parsimony/masks/magnitude.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "parsimony/graph/errors.h"

namespace parsimony {

bool has_magnitude(DType type) {
  return is_floating(type) || is_small_integer(type) || type == DType::kInt16 ||
         type == DType::kUInt16;
}

void reject_nan(const Weight& weight) {
  visit_magnitude(weight, [&]<typename Source>(Source) {
    const int64_t count = weight.count();
    for (int64_t i = 0; i < count; ++i) {
      if (std::isnan(Source::at(weight.data + i * weight.stride))) {
        throw errors::nan_weight(weight.name, i);
      }
    }
  });
}

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
  // Widened to double, all other types end in 29 zeros: the last digit is 0.
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

// With high probability two elements of a sample enclose the threshold with few other elements in
// between (R. W. Floyd and R. L. Rivest, Expected time bounds for selection, 1975). One pass counts
// the elements below and collects those in between.

namespace {

using Weights = std::span<const Weight* const>;

constexpr int64_t kSample = 1 << 15;
// Between the rank that is expected and an enclosing element, in standard errors of its rank.
constexpr double kErrors = 4;
// Elements that are compared in one loop, in vectors; then those within the bounds are looked at.
constexpr int64_t kChunk = 2048;

struct Bounds {
  double low = 0;
  double high = 0;
};

/// One element of each of `kSample` equal parts, all of them where there are no more.
std::vector<double> sample(Weights weights, int64_t total) {
  const int64_t count = std::min(total, kSample);
  const auto begin_of = [&](int64_t part) {
    return part * (total / count) + part * (total % count) / count;
  };
  std::minstd_rand random;
  std::vector<double> result;
  result.reserve(count);
  int64_t before = 0;
  for (const Weight* weight : weights) {
    const int64_t end = before + weight->count();
    visit_magnitude(*weight, [&]<typename Source>(Source) {
      for (auto part = static_cast<int64_t>(result.size()); part < count; ++part) {
        const int64_t begin = begin_of(part);
        if (begin >= end) break;
        // A part that reaches into the next weight is this one's.
        const int64_t length = std::min(begin_of(part + 1), end) - begin;
        const int64_t at = begin + static_cast<int64_t>(random()) % length - before;
        result.push_back(Source::at(weight->data + at * weight->stride));
      }
    });
    before = end;
  }
  return result;
}

Bounds enclose(std::vector<double> sampled, int64_t total, int64_t count) {
  const auto size = static_cast<double>(sampled.size());
  const double share = static_cast<double>(count) / static_cast<double>(total);
  const bool is_all = static_cast<int64_t>(sampled.size()) == total;
  const double margin = is_all ? 0 : 1 + kErrors * std::sqrt(size * share * (1 - share));
  const double rank = is_all ? static_cast<double>(count - 1) : size * share;
  const auto at = [&](double expected) {
    const auto place = sampled.begin() + static_cast<int64_t>(expected);
    std::nth_element(sampled.begin(), place, sampled.end());
    return *place;
  };
  return {rank < margin ? -1 : at(rank - margin),
          rank + margin < size ? at(rank + margin) : std::numeric_limits<double>::infinity()};
}

/// Counts of elements by their position relative to the bounds.
struct SampleTally {
  int64_t below = 0;
  int64_t at_low = 0;
  int64_t at_high = 0;
  std::vector<double> between;
  size_t most_between = 0;
  bool misled = false;  ///< more are between than there is room for
};

/// Few of the flags are 1, the others 0.
template <typename Use>
void for_each_one(const std::array<uint8_t, kChunk>& flags, Use&& use) {
  static_assert(std::endian::native == std::endian::little);
  for (int64_t i = 0; i < kChunk; i += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, flags.data() + i, sizeof eight);
    for (; eight != 0; eight &= eight - 1) use(i + std::countr_zero(eight) / 8);
  }
}

/// Number: a type that holds elements and bounds exactly.
template <typename Source, typename Number, bool kPacked>
void add(const Weight& weight, const Bounds& bounds, SampleTally& tally) {
  const auto low = static_cast<Number>(bounds.low);
  const auto high = static_cast<Number>(bounds.high);
  const auto at = [&weight](int64_t i) {
    return static_cast<Number>(
        Source::at(weight.data + i * (kPacked ? Source::kBytes : weight.stride)));
  };
  const auto look_at = [&](Number x) {
    if (std::isnan(x)) reject_nan(weight);
    if (x == low) {
      ++tally.at_low;
    } else if (x == high) {
      ++tally.at_high;
    } else if (tally.between.size() < tally.most_between) {
      tally.between.push_back(x);
    } else {
      tally.misled = true;
    }
  };
  std::array<uint8_t, kChunk> within{};
  for (int64_t begin = 0; begin < weight.count(); begin += kChunk) {
    const int64_t count = std::min(kChunk, weight.count() - begin);
    int32_t below = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Number x = at(begin + i);
      const int is_below = x < low ? 1 : 0;
      const int is_above = x > high ? 1 : 0;
      below += is_below;
      within[i] = static_cast<uint8_t>(1 - is_below - is_above);
    }
    tally.below += below;
    std::fill(within.begin() + count, within.end(), 0);
    for_each_one(within, [&](int64_t i) { look_at(at(begin + i)); });
  }
}

template <typename Source, typename Number>
void add(const Weight& weight, const Bounds& bounds, SampleTally& tally) {
  if (weight.stride == Source::kBytes) {
    add<Source, Number, true>(weight, bounds, tally);
  } else {
    add<Source, Number, false>(weight, bounds, tally);
  }
}

bool is_float(double x) { return static_cast<double>(static_cast<float>(x)) == x; }

}  // namespace

std::optional<MagnitudeThreshold> threshold_by_sample(Weights weights, int64_t count) {
  int64_t total = 0;
  for (const Weight* weight : weights) total += weight->count();
  std::vector<double> sampled = sample(weights, total);
  if (std::ranges::any_of(sampled, [](double x) { return std::isnan(x); })) {
    for (const Weight* weight : weights) reject_nan(*weight);
  }
  const Bounds bounds = enclose(std::move(sampled), total, count);
  const bool as_floats = is_float(bounds.low) && is_float(bounds.high);
  SampleTally tally;
  tally.most_between = total / 8;
  for (const Weight* weight : weights) {
    visit_magnitude(*weight, [&]<typename Source>(Source) {
      if (as_floats && !std::is_same_v<Source, magnitude::Float64>) {
        add<Source, float>(*weight, bounds, tally);
      } else {
        add<Source, double>(*weight, bounds, tally);
      }
    });
  }
  int64_t left = count - tally.below;
  if (left <= 0 || tally.misled) return std::nullopt;
  if (left <= tally.at_low) return MagnitudeThreshold{bounds.low, left};
  left -= tally.at_low;
  const auto between = static_cast<int64_t>(tally.between.size());
  if (left > between) {
    left -= between;
    return left <= tally.at_high ? std::optional(MagnitudeThreshold{bounds.high, left})
                                 : std::nullopt;
  }
  const auto place = tally.between.begin() + (left - 1);
  std::nth_element(tally.between.begin(), place, tally.between.end());
  const double magnitude = *place;
  const auto smaller =
      std::count_if(tally.between.begin(), place, [&](double x) { return x < magnitude; });
  return MagnitudeThreshold{magnitude, left - smaller};
}

}  // namespace parsimony
