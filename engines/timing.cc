#include "parsimony/engines/timing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace parsimony::machine {
namespace {

constexpr double kConfidence = 0.95;
constexpr double kNoDifference = 0.01;

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> result(values.begin(), values.end());
  std::sort(result.begin(), result.end());
  return result;
}

/// How many of `count` values may be left out at either end so that the true median still lies
/// between the others with kConfidence; -1 if there are too few values for that.
int left_out(int count) {
  // Each value lies below the true median as heads are thrown.
  const double halves = count * std::log(0.5);
  double tail = 0;
  for (int heads = 0; 2 * heads < count; ++heads) {
    tail += std::exp(std::lgamma(count + 1.0) - std::lgamma(heads + 1.0) -
                     std::lgamma(count - heads + 1.0) + halves);
    if (2 * tail > 1 - kConfidence) return heads - 1;
  }
  return -1;
}

}  // namespace

Summary summary_of(std::span<const double> times) {
  Summary summary;
  summary.runs = static_cast<int>(times.size());
  if (times.empty()) return summary;
  const std::vector<double> ordered = sorted(times);
  summary.median = quantile(ordered, 0.5);
  summary.low = quantile(ordered, 0.25);
  summary.high = quantile(ordered, 0.75);
  return summary;
}

bool Ratio::differs() const {
  return (low > 1 || high < 1) && std::abs(median - 1) >= kNoDifference;
}

Ratio compare(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  Ratio result;
  result.pairs = static_cast<int>(ratios.size());
  result.high = std::numeric_limits<double>::infinity();
  if (ratios.empty()) return result;
  std::sort(ratios.begin(), ratios.end());
  result.median = quantile(ratios, 0.5);
  const int out = left_out(result.pairs);
  if (out < 0) return result;
  result.low = ratios[out];
  result.high = ratios[ratios.size() - 1 - out];
  return result;
}

}  // namespace parsimony::machine
