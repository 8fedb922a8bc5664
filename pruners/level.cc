#include "parsimony/pruners/level.h"

#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/masks/magnitude.h"
#include "parsimony/pruners/elements/contraction.h"

namespace parsimony {

namespace {

/// Bounds of one matrix.
struct Bounds {
  int64_t least = 0;
  int64_t most = 0;

  int64_t within(int64_t count) const { return std::clamp(count, least, most); }
};

Bounds bounds_of(const Request& request, int64_t elements) {
  const int64_t most = floor_of(request.max_ratio, elements);
  return {std::min(ceil_of(request.min_ratio, elements), most), most};
}

int64_t count_below(const Weight& weight, double threshold) {
  return visit_magnitude(weight, [&]<typename Source>(Source) {
    int64_t count = 0;
    for (int64_t i = 0; i < weight.count(); ++i) {
      if (Source::at(weight.data + i * weight.stride) < threshold) ++count;
    }
    return count;
  });
}

/// A matrix in a budget that several share.
struct Share {
  const Weight* weight = nullptr;
  Bounds bounds;
  int64_t count = 0;
  bool settled = false;  ///< at one of its bounds
};

/// Ranks the matrices that are not settled, for what the settled ones leave of the target.
void rank_open(std::vector<Share>& shares, int64_t target) {
  std::vector<const Weight*> open;
  int64_t elements = 0;
  for (const Share& share : shares) {
    if (share.settled) {
      target -= share.count;
    } else {
      open.push_back(share.weight);
      elements += share.weight->count();
    }
  }
  target = std::clamp<int64_t>(target, 0, elements);
  const std::vector<int64_t> counts =
      target > 0 ? count_smallest(open, target) : std::vector<int64_t>(open.size());
  size_t next = 0;
  for (Share& share : shares) {
    if (!share.settled) share.count = counts[next++];
  }
}

/// Settles those beyond one bound, the one that is missed by more; false if none is.
bool settle(std::vector<Share>& shares) {
  int64_t above = 0;
  int64_t below = 0;
  for (const Share& share : shares) {
    above += std::max<int64_t>(0, share.count - share.bounds.most);
    below += std::max<int64_t>(0, share.bounds.least - share.count);
  }
  if (above == 0 && below == 0) return false;
  for (Share& share : shares) {
    const int64_t bound = above >= below ? share.bounds.most : share.bounds.least;
    const bool beyond = above >= below ? share.count > bound : share.count < bound;
    if (!beyond) continue;
    share.count = bound;
    share.settled = true;
  }
  return true;
}

void share_out(std::vector<Share>& shares, double ratio) {
  int64_t total = 0;
  for (const Share& share : shares) total += share.weight->count();
  do {
    rank_open(shares, floor_of(ratio, total));
  } while (settle(shares));
}

}  // namespace

std::vector<int64_t> level_counts(const Settings& settings,
                                  const std::vector<LeveledMatrix>& matrices) {
  std::vector<int64_t> counts(matrices.size());
  for (const std::vector<int>& requests : shared_budgets(settings)) {
    const Request& first = settings.requests[requests.front()];
    std::vector<Share> shares;
    std::vector<size_t> places;
    for (size_t i = 0; i < matrices.size(); ++i) {
      const auto [weight, r] = matrices[i];
      if (!contains(requests, r)) continue;
      const Request& request = settings.requests[r];
      const int64_t elements = weight->count();
      Share share{weight, bounds_of(request, elements), 0, false};
      share.count = share.bounds.within(request.threshold ? count_below(*weight, *request.threshold)
                                                          : floor_of(request.ratio, elements));
      shares.push_back(share);
      places.push_back(i);
    }
    if (first.scope != Scope::kLocal && !first.threshold) share_out(shares, first.ratio);
    for (size_t i = 0; i < shares.size(); ++i) counts[places[i]] = shares[i].count;
  }
  return counts;
}

namespace {

/// Zero lies somewhere in the middle of the numbers, not at 0.
bool is_unsigned(DType type) {
  return type == DType::kUInt8 || type == DType::kUInt16 || type == DType::kUInt4 ||
         type == DType::kUInt2;
}

}  // namespace

std::vector<TensorZeros> prune_elements(const Graph& graph, const Settings& settings) {
  const std::vector<elements::ElementTask> tasks = elements::element_tasks(graph, settings);
  std::vector<LeveledMatrix> matrices;
  for (size_t r = 0; r < settings.requests.size(); ++r) {
    if (settings.requests[r].criterion != "level") continue;
    for (const elements::ElementTask& task : tasks) {
      const Weight& weight = graph.weight(task.weight);
      if (task.request != static_cast<int>(r) || is_unsigned(weight.dtype)) continue;
      matrices.push_back({&weight, static_cast<int>(r)});
    }
  }
  const std::vector<int64_t> counts = level_counts(settings, matrices);
  std::vector<TensorZeros> result;
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (counts[i] > 0) result.push_back({matrices[i].weight->name, counts[i]});
    graph.source->release(*matrices[i].weight);
  }
  return result;
}

}  // namespace parsimony
