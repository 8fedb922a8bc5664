#include "parsimony/pruners/allocate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

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
  std::vector<std::vector<size_t>> units;  ///< of Scored; those that lose equally many together
  std::vector<Candidate> candidates;       ///< parallel to units
};

/// One candidate for units that lose equally many channels: its channel p are those of each unit
/// that is removed as number p, with their mean score.
Candidate joined(const Scored& scored, const std::vector<size_t>& units, const Request& request) {
  Candidate result = scored.candidates[units.front()];
  if (units.size() == 1) return result;
  std::iota(result.order.begin(), result.order.end(), 0);
  result.score.assign(result.order.size(), 0);
  result.weight = 0;
  result.units = 0;
  result.shape = 0;
  for (const size_t u : units) {
    const Candidate& own = scored.candidates[u];
    if (own.limits.size != result.limits.size) {
      throw ConfigError("\"equal_width_id\": ", request.equal_width, ": its groups have ",
                        result.limits.size, " and ", own.limits.size, " channels");
    }
    result.limits = stricter(result.limits, own.limits);
    result.weight += own.weight;
    result.units += own.units;
    result.below = std::min(result.below, own.below);
    result.shape += own.shape;
    for (size_t p = 0; p < result.score.size(); ++p) {
      result.score[p] += own.score[own.order[p]] / static_cast<double>(units.size());
    }
  }
  return result;
}

/// Pools in the order in which they are spent: an amount is what remains after all others.
std::vector<Pool> make_pools(const Settings& settings, const Scored& scored) {
  std::vector<Pool> pools;
  std::vector<size_t> pool_of(settings.requests.size());
  for (const std::vector<int>& requests : shared_budgets(settings)) {
    for (const int r : requests) pool_of[r] = pools.size();
    pools.push_back({&settings.requests[requests.front()], {}, {}});
  }
  std::map<std::pair<size_t, std::string>, size_t> ties;
  for (size_t u = 0; u < scored.units.size(); ++u) {
    const int request = scored.units[u].request;
    Pool& pool = pools[pool_of[request]];
    const std::string& tie = settings.requests[request].equal_width;
    const auto [place, fresh] = ties.try_emplace({pool_of[request], tie}, pool.units.size());
    if (fresh || tie.empty()) {
      pool.units.push_back({u});
    } else {
      pool.units[place->second].push_back(u);
    }
  }
  for (Pool& pool : pools) {
    for (const std::vector<size_t>& units : pool.units) {
      const int request = scored.units[units.front()].request;
      pool.candidates.push_back(joined(scored, units, settings.requests[request]));
    }
  }
  std::ranges::stable_sort(pools, [](const Pool& a, const Pool& b) {
    return !a.request->amount.has_value() && b.request->amount.has_value();
  });
  std::erase_if(pools, [](const Pool& pool) { return pool.units.empty(); });
  return pools;
}

void remove(const Pool& pool, const Scored& scored, const std::vector<int>& counts,
            AxisMasks& masks) {
  for (size_t i = 0; i < pool.units.size(); ++i) {
    for (const size_t u : pool.units[i]) {
      for (const GroupId g : scored.units[u].groups) {
        keep_best(scored.candidates[u], scored.candidates[u].limits.size - counts[i],
                  masks.keep[g]);
      }
    }
  }
}

/// Records the criterion's scores, or those that spending the pool made of them.
void record_scores(const Pool& pool, const Scored& scored, PerGroup<std::vector<double>>& scores) {
  for (size_t i = 0; i < pool.units.size(); ++i) {
    const Candidate& ranked = pool.candidates[i];
    for (const size_t u : pool.units[i]) {
      std::vector<double> own = ranked.score;
      for (size_t p = 0; pool.units[i].size() > 1 && p < own.size(); ++p) {
        own[scored.candidates[u].order[p]] = ranked.score[p];
      }
      for (const GroupId g : scored.units[u].groups) scores[g] = own;
    }
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
    remove(pool_, scored_, counts, masks);
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
        settings_(settings),
        scored_(scored),
        choose_(choose),
        importance_(importance),
        quantities_(graph, facts, coupling) {
    check_shares(settings, coupling, quantities_);
  }

  void spend(Pool& pool, Allocation& result) {
    const Request& request = *pool.request;
    if (choose_) return remove(pool, scored_, chosen(pool), result.masks);
    if (request.budget == Budget::kLatency) {  // spent by spend_latency()
      const auto is_tied = [&](const std::vector<size_t>& units) {
        return !settings_.requests[scored_.units[units.front()].request].equal_width.empty();
      };
      if (std::ranges::none_of(pool.units, is_tied)) return;
      throw ConfigError("\"equal_width_id\" cannot be combined with a latency budget");
    }
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
    remove(pool, scored_, counts.removed, result.masks);
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
    remove(pool, scored_, counts.removed, result.masks);
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
      const std::vector<double> curve = curve_of(pool.units[i]);
      const double cost = cost_of(i);
      if (curve.empty() || cost <= 0) {
        result.conflicts.push_back({scored_.units[pool.units[i].front()].groups.front(),
                                    "is ranked last: the outputs do not determine its importance"});
        candidate.score.assign(candidate.score.size(), std::numeric_limits<double>::infinity());
      } else {
        candidate.score = importance_scores(candidate, curve, cost);
      }
    }
  }

  /// The mean of the importance curves of units that lose equally many; empty if one is unknown.
  std::vector<double> curve_of(const std::vector<size_t>& units) const {
    std::vector<double> mean;
    for (const size_t u : units) {
      const std::vector<double> own = importance_(scored_.units[u].groups, scored_.candidates[u]);
      if (own.empty()) return {};
      mean.resize(own.size());
      for (size_t k = 0; k < own.size(); ++k) {
        mean[k] += own[k] / static_cast<double>(units.size());
      }
    }
    return mean;
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
  const Settings& settings_;
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
    record_scores(pool, scored, result.scores);
  }
  result.given_back = keep_enough(coupling, scored.ranks, result.masks);
  return result;
}

}  // namespace parsimony
