#include "parsimony/pruners/allocate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "parsimony/masks/cost.h"
#include "parsimony/masks/memory.h"
#include "parsimony/pruners/candidates.h"
#include "parsimony/pruners/errors.h"

namespace parsimony {

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

/// Those of the criterion, or what spending the pool made of them.
void record_scores(const Pool& pool, PerGroup<std::vector<double>>& scores) {
  for (size_t i = 0; i < pool.units.size(); ++i) {
    for (const GroupId g : pool.units[i]->groups) scores[g] = pool.candidates[i].score;
  }
}

bool is_of_network(Budget budget) {
  return budget != Budget::kChannels && budget != Budget::kWeights && budget != Budget::kLatency;
}

/// What budgets count of a whole network.
class Quantities {
 public:
  Quantities(const Graph& graph, const Facts& facts, const Coupling& coupling)
      : graph_(graph), facts_(facts), coupling_(coupling) {}

  double operator()(Budget budget, const AxisMasks& masks) {
    switch (budget) {
      case Budget::kMacs:
        return static_cast<double>(cost().under(masks).macs);
      case Budget::kPeakRam:
        if (!memory_) memory_.emplace(graph_, facts_, coupling_);
        return static_cast<double>(memory_->peak(masks));
      case Budget::kFile:
        return static_cast<double>(weights().under(masks) + beside_weights_);
      case Budget::kWeightBytes:
        return static_cast<double>(weights().under(masks));
      default:
        return static_cast<double>(cost().under(masks).params);
    }
  }

 private:
  const CostModel& cost() {
    if (!cost_) cost_.emplace(graph_, facts_, coupling_);
    return *cost_;
  }

  const WeightBytes& weights() {
    if (!weights_) {
      weights_.emplace(graph_, coupling_);
      const int64_t dense = weights_->under(AxisMasks::all_kept(coupling_));
      beside_weights_ = std::max<int64_t>(0, graph_.file_bytes - dense);
    }
    return *weights_;
  }

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  std::optional<CostModel> cost_;
  std::optional<ActivationMemory> memory_;
  std::optional<WeightBytes> weights_;
  int64_t beside_weights_ = 0;  ///< what the file has
};

/// An amount that may remain of what a budget counts.
struct Most {
  Limit limit;
  double dense = 0;
  double amount = 0;
};

/// What limits count as a function of a pool's channels; all else is as in `masks`. Of several
/// limits it is the largest share of an amount, and the amount is 1.
class CostOfCounts {
 public:
  CostOfCounts(Quantities& quantities, const Coupling& coupling, const Scored& scored,
               const Pool& pool, AxisMasks masks)
      : quantities_(quantities),
        coupling_(coupling),
        scored_(scored),
        pool_(pool),
        masks_(std::move(masks)) {
    const Request& request = *pool.request;
    add({request.budget, request.amount, request.ratio});
    for (const Limit& limit : request.also) add(limit);
  }

  double operator()(const std::vector<int>& counts) const { return of(masks_of(counts)); }
  double dense() const { return of(AxisMasks::all_kept(coupling_)); }
  double most() const { return limits_.size() == 1 ? limits_[0].amount : 1; }

  /// The limits that these counts do not keep, and what is left there.
  std::vector<std::pair<Most, double>> missed(const std::vector<int>& counts) const {
    const AxisMasks masks = masks_of(counts);
    std::vector<std::pair<Most, double>> missed;
    for (const Most& most : limits_) {
      const double left = quantities_(most.limit.budget, masks);
      if (left > most.amount) missed.emplace_back(most, left);
    }
    return missed;
  }

 private:
  void add(const Limit& limit) {
    constexpr double kRounding = 1e-12;  // 1000 · (1 - 0.9) is 99.99…
    const double dense = quantities_(limit.budget, AxisMasks::all_kept(coupling_));
    const double most = limit.amount.value_or(std::floor(dense * (1 - limit.ratio + kRounding)));
    limits_.push_back({limit, dense, most});
  }

  AxisMasks masks_of(const std::vector<int>& counts) const {
    AxisMasks masks = masks_;
    remove(pool_, counts, masks);
    keep_at_least_one(coupling_, scored_.ranks, masks);
    return masks;
  }

  double of(const AxisMasks& masks) const {
    if (limits_.size() == 1) return quantities_(limits_[0].limit.budget, masks);
    double largest = 0;
    for (const Most& most : limits_) {
      largest = std::max(largest, quantities_(most.limit.budget, masks) / most.amount);
    }
    return largest;
  }

  Quantities& quantities_;
  const Coupling& coupling_;
  const Scored& scored_;
  const Pool& pool_;
  AxisMasks masks_;
  std::vector<Most> limits_;
};

std::string unit_of(Budget budget) {
  switch (budget) {
    case Budget::kMacs:
      return "MACs";
    case Budget::kParams:
      return "parameters";
    case Budget::kWeights:
      return "weights";
    case Budget::kWeightBytes:
      return "bytes of weights";
    case Budget::kFile:
      return "bytes of the file";
    case Budget::kPeakRam:
      return "bytes of activations";
    default:
      return "channels";
  }
}

std::string shortfall(const Limit& limit, double share_gone, double left) {
  char text[200];
  const std::string unit = unit_of(limit.budget);
  if (limit.amount) {
    std::snprintf(text, sizeof text, "asked for at most %.0f %s: no fewer than %.0f can be reached",
                  *limit.amount, unit.c_str(), left);
  } else {
    std::snprintf(text, sizeof text, "asked to remove %g%% of the %s: no more than %.1f%% can go",
                  limit.ratio * 100, unit.c_str(), share_gone * 100);
  }
  return text;
}

/// Spends the budgets of one network.
class Spender {
 public:
  Spender(const Graph& graph, const Facts& facts, const Coupling& coupling, const Scored& scored,
          const ChooseFunction& choose, const ImportanceCurves& importance)
      : coupling_(coupling),
        scored_(scored),
        choose_(choose),
        importance_(importance),
        quantities_(graph, facts, coupling) {}

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
      note({request.budget, request.amount, request.ratio}, counts.reached, 0, result);
    }
    remove(pool, counts.removed, result.masks);
  }

 private:
  /// By the custom allocator, within the limits.
  std::vector<int> chosen(const Pool& pool) const {
    std::vector<int> counts = choose_(*pool.request, pool.candidates);
    if (counts.size() != pool.candidates.size()) {
      throw errors::wrong_counts(counts.size(), pool.candidates.size());
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
      for (const auto& [most, left] : cost.missed(counts.removed)) {
        note(most.limit, most.dense > 0 ? 1 - left / most.dense : 0, left, result);
      }
    }
    remove(pool, counts.removed, result.masks);
  }

  /// Ranks channels by their importance to the outputs per unit of cost saved.
  template <typename CostOf>
  void rank_by_importance(Pool& pool, Allocation& result, const CostOf& cost_of) const {
    if (!importance_) throw errors::no_r_squared();
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

  static void note(const Limit& limit, double share_gone, double left, Allocation& result) {
    result.conflicts.push_back({kNone, shortfall(limit, share_gone, left)});
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
  Spender spender(graph, facts, coupling, scored, choose, importance);
  result.scores.resize(coupling.groups.size());
  for (Pool& pool : make_pools(settings, scored)) {
    spender.spend(pool, result);
    record_scores(pool, result.scores);
  }
  result.given_back = keep_at_least_one(coupling, scored.ranks, result.masks);
  return result;
}

}  // namespace parsimony
