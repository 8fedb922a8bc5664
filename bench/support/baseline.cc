#include "bench/support/baseline.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace parsimony::bench {
namespace {

constexpr int kVersion = 1;
constexpr size_t kLeastRuns = 3;
constexpr double kLeastBand = 0.1;
constexpr double kMargin = 2;

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Expected expected_of(const std::string& measure, std::span<const Ratios> runs) {
  std::vector<double> ratios;
  for (const Ratios& run : runs) {
    const auto it = run.find(measure);
    if (it == run.end()) throw std::runtime_error(measure + " was not measured in every run");
    ratios.push_back(it->second);
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[ratios.size() / 2];
  return {median, std::max(kLeastBand, kMargin * (ratios.back() - ratios.front()) / median)};
}

Verdict compare(const Expected& expected, double found) {
  if (found > expected.ratio * (1 + expected.band)) return Verdict::kSlower;
  // As many times as quick, not as many per cent: a band of 1 would allow everything.
  if (found * (1 + expected.band) < expected.ratio) return Verdict::kQuicker;
  return Verdict::kSame;
}

}  // namespace

Baseline summarise(std::string_view processor, std::span<const Ratios> runs) {
  if (runs.size() < kLeastRuns) throw std::runtime_error("a baseline needs at least three runs");
  Baseline baseline{std::string(processor), static_cast<int>(runs.size()), {}};
  for (const Ratios& run : runs) {
    for (const auto& [measure, ratio] : run) {
      baseline.measures.try_emplace(measure, expected_of(measure, runs));
    }
  }
  return baseline;
}

std::vector<Comparison> compare(const Baseline& baseline, const Ratios& found) {
  std::vector<Comparison> comparisons;
  for (const auto& [measure, expected] : baseline.measures) {
    const auto it = found.find(measure);
    if (it == found.end()) {
      comparisons.push_back({measure, expected, std::nullopt, Verdict::kMissing});
    } else {
      comparisons.push_back({measure, expected, it->second, compare(expected, it->second)});
    }
  }
  for (const auto& [measure, ratio] : found) {
    if (baseline.measures.contains(measure)) continue;
    comparisons.push_back({measure, std::nullopt, ratio, Verdict::kNew});
  }
  std::sort(comparisons.begin(), comparisons.end(),
            [](const Comparison& a, const Comparison& b) { return a.measure < b.measure; });
  return comparisons;
}

bool passes(std::span<const Comparison> comparisons) {
  return std::none_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) {
    return c.verdict == Verdict::kSlower || c.verdict == Verdict::kMissing;
  });
}

std::string to_json(const Baseline& baseline) {
  nlohmann::ordered_json json;
  json["parsimony_baseline"] = kVersion;
  json["processor"] = baseline.processor;
  json["runs"] = baseline.runs;
  nlohmann::ordered_json& measures = json["measures"] = nlohmann::ordered_json::object();
  for (const auto& [measure, expected] : baseline.measures) {
    measures[measure] = {{"ratio", rounded(expected.ratio)}, {"band", rounded(expected.band)}};
  }
  return json.dump(1) + "\n";
}

Baseline parse_baseline(const std::string& text, const std::string& file) {
  try {
    const auto json = nlohmann::json::parse(text);
    const int version = json.at("parsimony_baseline").get<int>();
    if (version != kVersion) {
      throw std::runtime_error("version " + std::to_string(version) + ", expected " +
                               std::to_string(kVersion));
    }
    Baseline baseline{json.at("processor").get<std::string>(), json.at("runs").get<int>(), {}};
    for (const auto& [measure, expected] : json.at("measures").items()) {
      const Expected read{expected.at("ratio").get<double>(), expected.at("band").get<double>()};
      if (!(read.ratio > 0) || !(read.band > 0)) {
        throw std::runtime_error(measure + ": ratio and band are above 0");
      }
      baseline.measures.emplace(measure, read);
    }
    return baseline;
  } catch (const std::exception& error) {
    throw std::runtime_error(file + ": is no baseline: " + error.what());
  }
}

}  // namespace parsimony::bench
