// What the benchmarks found once, and whether they find it still. Times are multiples of a
// yardstick's in the same run, so that neither the machine nor what else it does counts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony::bench {

/// A ratio per measure: "chain/2000/couple".
using Ratios = std::map<std::string, double>;

struct Expected {
  double ratio = 0;
  double band = 0;  ///< a ratio up to (1 + band) times this one may be noise
};

struct Baseline {
  std::string processor;  ///< where it was measured
  int runs = 0;           ///< how often
  std::map<std::string, Expected> measures;
};

/// The median of several runs. The band is twice the distance of their extremes, for later runs
/// will meet other noise, and not less than 10 %.
/// @throws std::runtime_error if there are fewer than three, or a measure is not in all of them
Baseline summarise(std::string_view processor, std::span<const Ratios> runs);

enum class Verdict : uint8_t {
  kSame,
  kQuicker,  ///< beyond the band: worth a new baseline
  kSlower,   ///< beyond the band
  kNew,      ///< not in the baseline
  kMissing,  ///< in the baseline alone
};

struct Comparison {
  std::string measure;
  std::optional<Expected> expected;
  std::optional<double> found;
  Verdict verdict = Verdict::kSame;
};

/// Every measure of either, by name.
std::vector<Comparison> compare(const Baseline& baseline, const Ratios& found);

/// Nothing became slower, and nothing is missing.
bool passes(std::span<const Comparison> comparisons);

std::string to_json(const Baseline& baseline);

/// @throws std::runtime_error naming `file`, if the text is no baseline
Baseline parse_baseline(const std::string& text, const std::string& file);

}  // namespace parsimony::bench
