#include "parsimony/pruners/allocate.h"

#include <cstdio>
#include <optional>

#include "parsimony/masks/cost.h"
#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/layers.h"

namespace parsimony {

namespace {

/// The groups that follow one request.
struct Pool {
  std::vector<int> groups;
  std::vector<Candidate> candidates;  ///< parallel to groups
};

std::vector<Pool> make_pools(const Graph& graph, const Coupling& coupling, const Settings& settings,
                             const Followed& followed, const CriterionOptions& options) {
  std::vector<Pool> pools(settings.requests.size());
  for (size_t g = 0; g < coupling.groups.size(); ++g) {
    if (followed.request[g] == kNone) continue;
    const auto r = static_cast<size_t>(followed.request[g]);
    const Group& group = coupling.groups[g];
    const Scores scores =
        find_criterion(settings.requests[r].criterion).score(graph, group, options);
    pools[r].groups.push_back(static_cast<int>(g));
    pools[r].candidates.push_back(
        {limits_of(settings.requests[r], group.size), normalised(scores), removal_order(scores)});
  }
  return pools;
}

void remove(const Pool& pool, const std::vector<int>& counts, AxisMasks& masks) {
  for (size_t i = 0; i < pool.groups.size(); ++i) {
    auto& keep = masks.keep[static_cast<size_t>(pool.groups[i])];
    const auto& order = pool.candidates[i].order;
    for (size_t position = 0; position < order.size(); ++position) {
      const bool goes = static_cast<int>(position) < counts[i];
      keep[static_cast<size_t>(order[position])] = goes ? 0 : 1;
    }
  }
}

/// Share of the network's parameters or MACs that a pool's removal saves.
class Saving {
 public:
  Saving(const CostModel& model, const Coupling& coupling, const Pool& pool, Budget budget)
      : model_(model), pool_(pool), budget_(budget), masks_(AxisMasks::all_kept(coupling)) {}

  double operator()(const std::vector<int>& counts) {
    const int64_t dense = of(model_.dense());
    if (dense == 0) return 1;
    remove(pool_, counts, masks_);
    return 1 - static_cast<double>(of(model_.under(masks_))) / static_cast<double>(dense);
  }

 private:
  int64_t of(const Cost& cost) const { return budget_ == Budget::kMacs ? cost.macs : cost.params; }

  const CostModel& model_;
  const Pool& pool_;
  Budget budget_;
  AxisMasks masks_;
};

std::string shortfall(const Request& request, double reached) {
  const char* what = request.budget == Budget::kMacs     ? "MACs"
                     : request.budget == Budget::kParams ? "parameters"
                                                         : "channels";
  char text[160];
  std::snprintf(text, sizeof text, "asked to remove %g%% of the %s: no more than %.1f%% can go",
                request.ratio * 100, what, reached * 100);
  return text;
}

}  // namespace

Allocation allocate(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const Settings& settings, const CriterionOptions& options) {
  const Layers layers(graph);
  Followed followed = follow(graph, layers, coupling, settings);
  const std::vector<Pool> pools = make_pools(graph, coupling, settings, followed, options);

  Allocation result;
  result.compromises = std::move(followed.compromises);
  result.masks = AxisMasks::all_kept(coupling);
  std::vector<std::vector<double>> scores(coupling.groups.size());
  std::optional<CostModel> model;
  for (size_t r = 0; r < pools.size(); ++r) {
    const Request& request = settings.requests[r];
    if (pools[r].groups.empty()) continue;
    Share share;
    if (request.budget != Budget::kChannels) {
      if (!model) model.emplace(graph, facts, coupling);
      share = Saving(*model, coupling, pools[r], request.budget);
    }
    const Counts counts = choose_counts(request, pools[r].candidates, share);
    if (!counts.feasible) {
      result.compromises.push_back({kNone, shortfall(request, counts.reached)});
    }
    remove(pools[r], counts.removed, result.masks);
    for (size_t i = 0; i < pools[r].groups.size(); ++i) {
      scores[static_cast<size_t>(pools[r].groups[i])] = pools[r].candidates[i].score;
    }
  }
  result.given_back = keep_at_least_one(coupling, scores, result.masks);
  return result;
}

}  // namespace parsimony
