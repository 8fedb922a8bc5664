#include "parsimony/pruners/budget.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace parsimony {

namespace {

constexpr double kSlack = 1e-9;        // 0.29 · 100 is 28.999…
constexpr uint32_t kSteps = 1U << 30;  // resolution of the uniform ratio

int floor_of(double share, int size) { return static_cast<int>(std::floor(share * size + kSlack)); }

/// Removed counts where a group is asked for wanted[i].
std::vector<int> within_limits(std::span<const Candidate> candidates, std::vector<int> wanted) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    wanted[i] = candidates[i].limits.removed(wanted[i]);
  }
  return wanted;
}

std::vector<int> uniform(std::span<const Candidate> candidates, double ratio) {
  std::vector<int> wanted;
  wanted.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    wanted.push_back(floor_of(ratio, candidate.limits.size));
  }
  return within_limits(candidates, std::move(wanted));
}

struct Ranked {
  double score;
  int channel;
  int candidate;
};

/// All channels, the first to go first. Within a candidate this is its own order.
std::vector<Ranked> ranking(std::span<const Candidate> candidates) {
  std::vector<Ranked> all;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto& scores = candidates[i].score;
    for (size_t c = 0; c < scores.size(); ++c) {
      all.push_back({scores[c], static_cast<int>(c), static_cast<int>(i)});
    }
  }
  std::sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) {
    if (a.score != b.score) return a.score < b.score;
    return a.channel != b.channel ? a.channel > b.channel : a.candidate < b.candidate;
  });
  return all;
}

std::vector<int> prefix(std::span<const Candidate> candidates, const std::vector<Ranked>& ranked,
                        size_t length) {
  std::vector<int> wanted(candidates.size());
  for (size_t i = 0; i < length; ++i) ++wanted[static_cast<size_t>(ranked[i].candidate)];
  return within_limits(candidates, std::move(wanted));
}

/// Smallest `step` of 0..last whose counts reach the ratio.
template <typename CountsAt>
Counts bisect(double ratio, size_t last, const Share& share, const CountsAt& counts_at) {
  Counts best{counts_at(last), 0, true};
  best.reached = share(best.removed);
  best.feasible = best.reached + kSlack >= ratio;
  size_t low = 0;  // everything below it falls short
  size_t high = last;
  while (best.feasible && low < high) {
    const size_t middle = low + (high - low) / 2;
    std::vector<int> counts = counts_at(middle);
    const double reached = share(counts);
    if (reached + kSlack >= ratio) {
      best = {std::move(counts), reached, true};
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

Counts global_channels(double ratio, std::span<const Candidate> candidates) {
  const std::vector<Ranked> ranked = ranking(candidates);
  const auto total = static_cast<int64_t>(ranked.size());
  const auto target = static_cast<int64_t>(std::floor(ratio * static_cast<double>(total) + kSlack));
  std::vector<int> wanted(candidates.size());
  std::vector<int> removed = within_limits(candidates, wanted);
  int64_t sum = std::accumulate(removed.begin(), removed.end(), int64_t{0});
  for (size_t i = 0; i < ranked.size() && sum < target; ++i) {
    const auto c = static_cast<size_t>(ranked[i].candidate);
    const int now = candidates[c].limits.removed(++wanted[c]);
    sum += now - removed[c];
    removed[c] = now;
  }
  const double reached = total == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(total);
  return {std::move(removed), reached, sum >= target};
}

Counts local_channels(double ratio, std::span<const Candidate> candidates) {
  Counts counts{uniform(candidates, ratio), 0, true};
  int64_t sum = 0;
  int64_t total = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += counts.removed[i];
    total += candidates[i].limits.size;
  }
  counts.reached = total == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(total);
  return counts;
}

}  // namespace

int Limits::removed(int wanted) const {
  const int64_t kept = size - std::min(std::max(wanted, least), most);
  const int64_t rounded = (kept + round_to - 1) / round_to * round_to;
  return size - static_cast<int>(std::min<int64_t>(size, rounded));
}

Limits limits_of(const Request& request, int size) {
  Limits limits;
  limits.size = size;
  limits.most = std::max(0, std::min(floor_of(request.max_ratio, size), size - 1));
  limits.least = static_cast<int>(std::ceil(request.min_ratio * size - kSlack));
  limits.least = std::clamp(limits.least, 0, limits.most);
  limits.round_to = std::max(1, request.round_to);
  return limits;
}

std::vector<int> removal_order(const Scores& scores) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const double x = scores[static_cast<size_t>(a)];
    const double y = scores[static_cast<size_t>(b)];
    return x != y ? x < y : a > b;
  });
  return order;
}

std::vector<double> normalised(const Scores& scores) {
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  if (!(sum > 0)) return scores;
  std::vector<double> result;
  result.reserve(scores.size());
  const double mean = sum / static_cast<double>(scores.size());
  for (double score : scores) {
    // An infinite weight makes the mean infinite; its channel is the last to go.
    const double share = std::isinf(score) ? score : score / mean;
    result.push_back(share);
  }
  return result;
}

Counts choose_counts(const Request& request, std::span<const Candidate> candidates,
                     const Share& share) {
  const bool local = request.scope == Scope::kLocal;
  if (request.budget == Budget::kChannels) {
    return local ? local_channels(request.ratio, candidates)
                 : global_channels(request.ratio, candidates);
  }
  if (local) {
    return bisect(request.ratio, kSteps, share, [&](size_t step) {
      return uniform(candidates, static_cast<double>(step) / kSteps);
    });
  }
  const std::vector<Ranked> ranked = ranking(candidates);
  return bisect(request.ratio, ranked.size(), share,
                [&](size_t length) { return prefix(candidates, ranked, length); });
}

}  // namespace parsimony
