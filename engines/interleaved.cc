#include "parsimony/engines/interleaved.h"

#include <algorithm>
#include <chrono>

#include "parsimony/engines/timing.h"

namespace parsimony::machine {
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

/// How one contestant spends its rounds.
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

void run_round(const Work& work, const Pace& pace, const Clock& clock, Samples& samples) {
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

std::vector<Samples> run_interleaved(std::span<const Work> contestants,
                                     const InterleavedOptions& options, const Clock& clock) {
  std::vector<Samples> samples(contestants.size());
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
