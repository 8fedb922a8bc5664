#include "parsimony/pruners/budget.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace parsimony {

namespace {

constexpr uint32_t kSteps = 1U << 30;  // resolution of the uniform ratio

/// Removed counts where candidates are asked for requested[i].
std::vector<int> within_limits(std::span<const Candidate> candidates, std::vector<int> requested) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    requested[i] = candidates[i].limits.removed(requested[i]);
  }
  return requested;
}

std::vector<int> uniform(std::span<const Candidate> candidates, double ratio) {
  std::vector<int> requested;
  requested.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    requested.push_back(static_cast<int>(floor_of(ratio, candidate.limits.size)));
  }
  return within_limits(candidates, std::move(requested));
}

struct Ranked {
  double score;
  int channel;
  int candidate;
};

using Ranking = std::vector<Ranked>;

/// Channels of the candidates in order of removal.
Ranking ranking(std::span<const Candidate> candidates, const std::vector<int>& which) {
  Ranking all;
  for (const int i : which) {
    const auto& scores = candidates[i].score;
    for (size_t c = 0; c < scores.size(); ++c) all.push_back({scores[c], static_cast<int>(c), i});
  }
  std::ranges::sort(all, [](const Ranked& a, const Ranked& b) {
    if (a.score != b.score) return a.score < b.score;
    return a.channel != b.channel ? a.channel > b.channel : a.candidate < b.candidate;
  });
  return all;
}

/// One ranking for all candidates, or one for each class of equal shape.
std::vector<Ranking> rankings(Scope scope, std::span<const Candidate> candidates) {
  std::map<uint64_t, std::vector<int>> classes;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const uint64_t shape = scope == Scope::kIsomorphic ? candidates[i].shape : 0;
    classes[shape].push_back(static_cast<int>(i));
  }
  std::vector<Ranking> result;
  result.reserve(classes.size());
  for (const auto& [shape, which] : classes) result.push_back(ranking(candidates, which));
  return result;
}

/// Counts if the first channels of each ranking are removed.
template <typename LengthOf>
std::vector<int> prefixes(std::span<const Candidate> candidates, const std::vector<Ranking>& ranked,
                          const LengthOf& length_of) {
  std::vector<int> requested(candidates.size());
  for (const Ranking& ranking : ranked) {
    const size_t length = length_of(ranking.size());
    for (size_t i = 0; i < length; ++i) ++requested[ranking[i].candidate];
  }
  return within_limits(candidates, std::move(requested));
}

/// Channels count 1 each, or as much as they have weights.
int64_t unit_of(const Request& request, const Candidate& candidate) {
  return request.budget == Budget::kWeights ? candidate.weight : candidate.units;
}

/// Share of the channels, or weights, that is removed.
double share_removed(const Request& request, std::span<const Candidate> candidates,
                     const std::vector<int>& removed) {
  double gone = 0;
  double total = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto unit = static_cast<double>(unit_of(request, candidates[i]));
    gone += unit * removed[i];
    total += unit * candidates[i].limits.size;
  }
  return total > 0 ? gone / total : 0;
}

/// Removes the lowest of one ranking up to the ratio; false if the limits do not allow that many.
bool take_lowest(const Request& request, std::span<const Candidate> candidates,
                 const Ranking& ranked, std::vector<int>& removed) {
  int64_t total = 0;
  std::map<int, int> requested;  // per candidate of the ranking
  for (const Ranked& channel : ranked) {
    requested[channel.candidate] = 0;
    total += unit_of(request, candidates[channel.candidate]);
  }
  const int64_t target = floor_of(request.ratio, total);
  int64_t sum = 0;
  for (const auto& [c, none] : requested) {
    const Candidate& candidate = candidates[c];
    removed[c] = candidate.limits.removed(0);
    sum += removed[c] * unit_of(request, candidate);
  }
  for (size_t i = 0; i < ranked.size() && sum < target; ++i) {
    const size_t c = ranked[i].candidate;
    const int now = candidates[c].limits.removed(++requested[ranked[i].candidate]);
    sum += (now - removed[c]) * unit_of(request, candidates[c]);
    removed[c] = now;
  }
  return sum >= target;
}

/// The smallest step of 0..last whose counts fit; the last where none does.
template <typename CountsAt>
std::vector<int> bisect(size_t last, const CountsAt& counts_at, const Remaining& remaining,
                        double most) {
  std::vector<int> best = counts_at(last);
  size_t low = 0;  // everything below it does not fit
  size_t high = last;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    std::vector<int> counts = counts_at(middle);
    if (remaining(counts) <= most) {
      best = std::move(counts);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

/// Restores the best channels as far as they fit.
void give_back(std::span<const Candidate> candidates, const Remaining& remaining, double most,
               std::vector<int>& removed) {
  std::vector<bool> done(candidates.size());
  const auto next_score = [&](size_t i) {
    const Candidate& candidate = candidates[i];
    return candidate.score[candidate.order[removed[i] - 1]];
  };
  while (true) {
    size_t best = candidates.size();
    for (size_t i = 0; i < candidates.size(); ++i) {
      done[i] = done[i] || candidates[i].limits.fewer(removed[i]) == removed[i];
      if (done[i]) continue;
      if (best == candidates.size() || next_score(i) > next_score(best)) best = i;
    }
    if (best == candidates.size()) return;
    std::vector<int> counts = removed;
    counts[best] = candidates[best].limits.fewer(removed[best]);
    if (remaining(counts) <= most) {
      removed = std::move(counts);
    } else {
      done[best] = true;
    }
  }
}

}  // namespace

GroupLimits limits_of(const Request& request, int size) {
  GroupLimits limits;
  limits.size = size;
  const int64_t may_go =
      std::min<int64_t>(floor_of(request.max_ratio, size), size - request.keep_at_least);
  limits.most = static_cast<int>(std::max<int64_t>(0, std::min<int64_t>(may_go, size - 1)));
  limits.least =
      static_cast<int>(std::clamp<int64_t>(ceil_of(request.min_ratio, size), 0, limits.most));
  limits.round_to = std::lcm(std::max(1, request.round_to), std::max(1, request.metric_blocks));
  return limits;
}

GroupLimits stricter(const GroupLimits& a, const GroupLimits& b) {
  GroupLimits limits = a;
  limits.most = std::min(a.most, b.most);
  limits.least = std::min(std::max(a.least, b.least), limits.most);
  limits.round_to = std::lcm(a.round_to, b.round_to);
  return limits;
}

std::vector<int> removal_order(const Scores& scores, int blocks) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto first = [&](int a, int b) {
    const double x = scores[a];
    const double y = scores[b];
    return x != y ? x < y : a > b;
  };
  std::ranges::sort(order, first);
  if (blocks <= 1) return order;
  const int length = static_cast<int>(scores.size()) / blocks;
  std::vector<int> taken(blocks);
  std::vector<int> rank(scores.size());
  for (const int c : order) {
    const size_t block = std::min(c / std::max(1, length), blocks - 1);
    rank[c] = taken[block]++;
  }
  std::ranges::stable_sort(order, [&](int a, int b) { return rank[a] < rank[b]; });
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

Counts choose_counts(const Request& request, std::span<const Candidate> candidates) {
  Counts counts;
  if (request.threshold) {
    std::vector<int> requested;
    for (const Candidate& candidate : candidates) requested.push_back(candidate.below);
    counts.removed = within_limits(candidates, std::move(requested));
  } else if (request.scope == Scope::kLocal) {
    counts.removed = uniform(candidates, request.ratio);
  } else {
    counts.removed.resize(candidates.size());
    for (const Ranking& ranked : rankings(request.scope, candidates)) {
      if (!take_lowest(request, candidates, ranked, counts.removed)) counts.feasible = false;
    }
  }
  counts.reached = share_removed(request, candidates, counts.removed);
  return counts;
}

Counts fit_budget(const Request& request, std::span<const Candidate> candidates,
                  const Remaining& remaining, double most) {
  Counts counts;
  if (request.scope == Scope::kGlobal || request.scope == Scope::kOutputs) {
    const std::vector<Ranking> ranked = rankings(request.scope, candidates);
    const size_t all = ranked.empty() ? 0 : ranked[0].size();
    const auto at = [&](size_t step) {
      return prefixes(candidates, ranked, [&](size_t) { return step; });
    };
    counts.removed = bisect(all, at, remaining, most);
  } else if (request.scope == Scope::kIsomorphic) {
    const std::vector<Ranking> ranked = rankings(request.scope, candidates);
    const auto at = [&](size_t step) {
      const double share = static_cast<double>(step) / kSteps;
      return prefixes(candidates, ranked,
                      [&](size_t length) { return floor_of(share, static_cast<int64_t>(length)); });
    };
    counts.removed = bisect(kSteps, at, remaining, most);
  } else {
    const auto at = [&](size_t step) {
      return uniform(candidates, static_cast<double>(step) / kSteps);
    };
    counts.removed = bisect(kSteps, at, remaining, most);
  }
  counts.remaining = remaining(counts.removed);
  counts.feasible = counts.remaining <= most;
  if (counts.feasible) {
    give_back(candidates, remaining, most, counts.removed);
    counts.remaining = remaining(counts.removed);
  }
  return counts;
}

}  // namespace parsimony
