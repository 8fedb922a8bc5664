#include "parsimony/engines/timing.h"

#include <algorithm>
#include <chrono>
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

/// Returns how many of `count` values can be dropped at either end so that the true median lies
/// between the others with kConfidence; -1 if there are too few values.
int left_out(int count) {
  // Each value lies below the true median with probability 1/2.
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

namespace {

constexpr double kTurn = 0.005;
constexpr double kShort = 0.02;
constexpr int kMostPerRound = 32;
constexpr size_t kLeastRounds = 3;
constexpr size_t kWindow = 5;
constexpr size_t kLeastWarmUp = 3;
constexpr double kNoQuicker = 0.98;

double seconds_of(const Work& work, const Clock& clock) {
  const double begin = clock();
  work();
  return clock() - begin;
}

bool has_settled(std::span<const double> times) {
  if (times.size() < 2 * kWindow) return false;
  const auto last = times.last(kWindow);
  const auto before = times.last(2 * kWindow).first(kWindow);
  return summary_of(last).median >= kNoQuicker * summary_of(before).median;
}

/// The pace of one contestant.
struct Pace {
  bool begins_uncounted = false;
  int counted = 1;
};

Pace pace_of(const Work& work, const InterleavedOptions& options, const Clock& clock) {
  const double once = seconds_of(work, clock);
  Pace pace;
  pace.begins_uncounted = once < kShort;
  if (options.runs > 0) return pace;
  const double fitting = kTurn / std::max(once, kTurn / kMostPerRound);
  pace.counted = std::clamp(static_cast<int>(fitting), 1, kMostPerRound);
  return pace;
}

void run_round(const Work& work, const Pace& pace, const Clock& clock, RunTimes& samples) {
  if (pace.begins_uncounted) work();
  for (int i = 0; i < pace.counted; ++i) samples.runs.push_back(seconds_of(work, clock));
  const std::span<const double> all = samples.runs;
  samples.rounds.push_back(summary_of(all.last(pace.counted)).median);
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int warm_up(const Work& work, const InterleavedOptions& options, const Clock& clock) {
  if (options.warm_up >= 0) {
    for (int i = 0; i < options.warm_up; ++i) work();
    return options.warm_up;
  }
  const double end = clock() + options.seconds / 3;
  std::vector<double> times;
  while (times.size() < kLeastWarmUp || (clock() < end && !has_settled(times))) {
    times.push_back(seconds_of(work, clock));
  }
  return static_cast<int>(times.size());
}

std::vector<RunTimes> run_interleaved(std::span<const Work> contestants,
                                      const InterleavedOptions& options, const Clock& clock) {
  std::vector<RunTimes> samples(contestants.size());
  std::vector<Pace> paces;
  for (const Work& work : contestants) paces.push_back(pace_of(work, options, clock));
  const double end = clock() + options.seconds * static_cast<double>(contestants.size());
  const auto goes_on = [&](size_t rounds) {
    if (options.runs > 0) return rounds < static_cast<size_t>(options.runs);
    return rounds < kLeastRounds || clock() < end;
  };
  for (size_t round = 0; !contestants.empty() && goes_on(round); ++round) {
    for (size_t c = 0; c < contestants.size(); ++c) {
      run_round(contestants[c], paces[c], clock, samples[c]);
    }
  }
  return samples;
}

}  // namespace parsimony::machine
