#include "parsimony/pruners/allocate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/candidates.h"
#include "parsimony/pruners/importance.h"
#include "parsimony/pruners/network_limits.h"

namespace parsimony {

int GroupLimits::removed(int requested) const {
  const int64_t kept = size - std::min(std::max(requested, least), most);
  const int64_t rounded = (kept + round_to - 1) / round_to * round_to;
  return size - static_cast<int>(std::min<int64_t>(size, rounded));
}

int GroupLimits::fewer(int count) const { return std::min(count, removed(count - 1)); }

namespace {

/// The units that follow requests of one budget.
struct Pool {
  const Request* request = nullptr;
  std::vector<const Unit*> units;
  std::vector<Candidate> candidates;  ///< parallel to units
};

/// Pools in the order in which they are spent: an amount is what remains after all others.
std::vector<Pool> make_pools(const Settings& settings, const Scored& scored) {
  std::vector<Pool> pools;
  std::vector<size_t> pool_of(settings.requests.size());
  for (const std::vector<int>& requests : shared_budgets(settings)) {
    for (const int r : requests) pool_of[r] = pools.size();
    pools.push_back({&settings.requests[requests.front()], {}, {}});
  }
  for (size_t u = 0; u < scored.units.size(); ++u) {
    Pool& pool = pools[pool_of[scored.units[u].request]];
    pool.units.push_back(&scored.units[u]);
    pool.candidates.push_back(scored.candidates[u]);
  }
  std::ranges::stable_sort(pools, [](const Pool& a, const Pool& b) {
    return !a.request->amount.has_value() && b.request->amount.has_value();
  });
  std::erase_if(pools, [](const Pool& pool) { return pool.units.empty(); });
  return pools;
}

void remove(const Pool& pool, const std::vector<int>& counts, AxisMasks& masks) {
  for (size_t i = 0; i < pool.units.size(); ++i) {
    const auto& order = pool.candidates[i].order;
    for (const GroupId g : pool.units[i]->groups) {
      auto& keep = masks.keep[g];
      for (size_t position = 0; position < order.size(); ++position) {
        const bool goes = static_cast<int>(position) < counts[i];
        keep[order[position]] = goes ? 0 : 1;
      }
    }
  }
}

/// Records the criterion's scores, or those that spending the pool made of them.
void record_scores(const Pool& pool, PerGroup<std::vector<double>>& scores) {
  for (size_t i = 0; i < pool.units.size(); ++i) {
    for (const GroupId g : pool.units[i]->groups) scores[g] = pool.candidates[i].score;
  }
}

/// The amounts that limits count, by a pool's channels; all else is as in `masks`.
class CostOfCounts {
 public:
  CostOfCounts(Quantities& quantities, const Coupling& coupling, const Scored& scored,
               const Pool& pool, AxisMasks masks)
      : coupling_(coupling), scored_(scored), pool_(pool), masks_(std::move(masks)) {
    const Request& request = *pool.request;
    std::vector<Limit> all = {{request.budget, request.amount, request.ratio}};
    all.insert(all.end(), request.also.begin(), request.also.end());
    limits_.emplace(quantities, coupling, std::move(all));
  }

  double operator()(const std::vector<int>& counts) const {
    return limits_->left(masks_of(counts));
  }
  double dense() const { return limits_->left(AxisMasks::all_kept(coupling_)); }
  double most() const { return limits_->most(); }
  /// Returns the limits that these counts do not keep to, in words.
  std::vector<std::string> missed(const std::vector<int>& counts) const {
    return limits_->missed(masks_of(counts));
  }

 private:
  AxisMasks masks_of(const std::vector<int>& counts) const {
    AxisMasks masks = masks_;
    remove(pool_, counts, masks);
    keep_enough(coupling_, scored_.ranks, masks);
    return masks;
  }

  const Coupling& coupling_;
  const Scored& scored_;
  const Pool& pool_;
  AxisMasks masks_;
  std::optional<NetworkLimits> limits_;
};

/// Spends the budgets of one network.
class Spender {
 public:
  Spender(const Graph& graph, const Facts& facts, const Coupling& coupling,
          const Settings& settings, const Scored& scored, const ChooseFunction& choose,
          const ImportanceCurves& importance)
      : coupling_(coupling),
        scored_(scored),
        choose_(choose),
        importance_(importance),
        quantities_(graph, facts, coupling) {
    check_shares(settings, coupling, quantities_);
  }

  void spend(Pool& pool, Allocation& result) {
    const Request& request = *pool.request;
    if (choose_) return remove(pool, chosen(pool), result.masks);
    if (request.budget == Budget::kLatency) return;  // spent by spend_latency()
    if (is_of_network(request.budget) && !request.threshold) return spend_cost(pool, result);
    if (request.scope == Scope::kOutputs) {
      rank_by_importance(pool, result, [&](size_t i) {
        const bool weights = request.budget == Budget::kWeights;
        return weights ? static_cast<double>(pool.candidates[i].weight) : 1.0;
      });
    }
    const Counts counts = choose_counts(request, pool.candidates);
    if (!counts.feasible) {
      const Limit limit{request.budget, request.amount, request.ratio};
      result.conflicts.push_back({kNone, shortfall(limit, counts.reached, 0)});
    }
    remove(pool, counts.removed, result.masks);
  }

 private:
  /// By the custom allocator, within the limits.
  std::vector<int> chosen(const Pool& pool) const {
    std::vector<int> counts = choose_(*pool.request, pool.candidates);
    if (counts.size() != pool.candidates.size()) {
      throw ConfigError("the allocator gave ", counts.size(), " counts for ",
                        pool.candidates.size(), " candidates; one for each is expected");
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] = pool.candidates[i].limits.removed(counts[i]);
    }
    return counts;
  }

  void spend_cost(Pool& pool, Allocation& result) {
    const Request& request = *pool.request;
    const CostOfCounts cost(quantities_, coupling_, scored_, pool,
                            request.amount ? result.masks : AxisMasks::all_kept(coupling_));
    const double dense = cost.dense();
    const auto cost_of = [&](size_t i) {  // of a channel
      std::vector<int> counts(pool.candidates.size());
      counts[i] = (pool.candidates[i].limits.size + 1) / 2;
      return (dense - cost(counts)) / counts[i];
    };
    if (request.scope == Scope::kOutputs) rank_by_importance(pool, result, cost_of);
    if (request.scope == Scope::kGlobal && find_criterion(request.criterion).loss) {
      divide_by_cost(pool, cost_of);
    }
    const Counts counts = fit_budget(request, pool.candidates, cost, cost.most());
    if (!counts.feasible) {
      for (std::string& text : cost.missed(counts.removed)) {
        result.conflicts.push_back({kNone, std::move(text)});
      }
    }
    remove(pool, counts.removed, result.masks);
  }

  /// Ranks channels by their importance to the outputs per unit of cost saved.
  template <typename CostOf>
  void rank_by_importance(Pool& pool, Allocation& result, const CostOf& cost_of) const {
    if (!importance_) {
      throw UnsupportedError(
          "scope \"outputs\" needs something that runs networks and compares their outputs: the "
          "command prune does; in a program, give PruneServices::r_squared");
    }
    for (size_t i = 0; i < pool.candidates.size(); ++i) {
      Candidate& candidate = pool.candidates[i];
      const std::vector<double> curve = importance_(pool.units[i]->groups, candidate);
      const double cost = cost_of(i);
      if (curve.empty() || cost <= 0) {
        result.conflicts.push_back({pool.units[i]->groups.front(),
                                    "is ranked last: the outputs do not determine its importance"});
        candidate.score.assign(candidate.score.size(), std::numeric_limits<double>::infinity());
      } else {
        candidate.score = importance_scores(candidate, curve, cost);
      }
    }
  }

  /// Losses per unit of cost saved; what saves nothing is ranked last.
  template <typename CostOf>
  static void divide_by_cost(Pool& pool, const CostOf& cost_of) {
    for (size_t i = 0; i < pool.candidates.size(); ++i) {
      const double cost = cost_of(i);
      for (double& score : pool.candidates[i].score) {
        score = cost > 0 ? score / cost : std::numeric_limits<double>::infinity();
      }
    }
  }

  const Coupling& coupling_;
  const Scored& scored_;
  const ChooseFunction& choose_;
  const ImportanceCurves& importance_;
  Quantities quantities_;
};

}  // namespace

Allocation allocate(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const Settings& settings, const CriterionOptions& options,
                    const ChooseFunction& choose, const ImportanceCurves& importance) {
  Scored scored = score_units(graph, coupling, settings, options);
  Allocation result;
  result.conflicts = std::move(scored.conflicts);
  result.masks = AxisMasks::all_kept(coupling);
  Spender spender(graph, facts, coupling, settings, scored, choose, importance);
  result.scores.resize(coupling.groups.size());
  for (Pool& pool : make_pools(settings, scored)) {
    spender.spend(pool, result);
    record_scores(pool, result.scores);
  }
  result.given_back = keep_enough(coupling, scored.ranks, result.masks);
  return result;
}

}  // namespace parsimony
