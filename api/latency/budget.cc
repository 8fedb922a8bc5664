#include "parsimony/api/latency/budget.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

#include "parsimony/pruners/candidates.h"
#include "parsimony/pruners/errors.h"
#include "parsimony/pruners/latency/widths.h"

namespace parsimony {
namespace {

constexpr double kAim = 0.985;  ///< of the budget: a margin for noise
constexpr int kMostAttempts = 24;
constexpr double kMilli = 1e-3;

const Request* latency_request(const Settings& settings) {
  const auto& all = settings.requests;
  const auto it = std::ranges::find_if(
      all, [](const Request& request) { return request.budget == Budget::kLatency; });
  return it == all.end() ? nullptr : &*it;
}

/// The target for the tables that makes the network take the wanted time.
class Aim {
 public:
  explicit Aim(double seconds) : seconds_(seconds) {}

  double seconds() const { return seconds_; }

  /// Corrects the target by the relative excess of the last network, bracketed between targets that
  /// were too slow and too fast. @returns false if the bracket is empty
  bool correct(double missed) {
    (missed > 0 ? slow_ : quick_) = seconds_;
    const double proportional = seconds_ * std::clamp(kAim / (1 + missed), 0.5, 2.0);
    if (proportional > quick_ && proportional < slow_) {
      seconds_ = proportional;
    } else if (std::isfinite(slow_)) {
      seconds_ = (quick_ + slow_) / 2;
    } else {
      seconds_ *= 1 + kNarrow;
    }
    return slow_ - quick_ > kNarrow * seconds_;
  }

 private:
  static constexpr double kNarrow = 0.005;

  double seconds_;
  double quick_ = 0;
  double slow_ = std::numeric_limits<double>::infinity();
};

class Spender {
 public:
  Spender(const LatencyTask& task, const LatencyBudgetOptions& options, LatencyTables& tables,
          Allocation& allocation)
      : task_(task), options_(options), tables_(tables), allocation_(allocation) {}

  LatencyOutcome run() {
    Probe probe = task_.probe;
    probe.first = options_.batch;
    const Facts facts = infer(task_.graph, probe);
    const Coupled network{task_.graph, probe, facts, task_.coupling};
    find_candidates();
    if (task_.r_squared) measure_importance(network);
    const std::vector<Subgraph> subgraphs = subgraphs_of(task_.graph, facts, task_.coupling);
    outcome_.subgraphs = static_cast<int>(subgraphs.size());
    outcome_.fresh =
        measure_subgraphs(network, subgraphs, *options_.meter, tables_, options_.progress);
    if (options_.progress) options_.progress("the whole network");
    search(LatencyModel(task_.coupling, subgraphs, tables_), network);
    return outcome_;
  }

 private:
  struct Trial {
    WidthChoice choice;
    AxisMasks masks;
    double share = 1;      ///< of the dense network's time
    double predicted = 0;  ///< the same by the tables
  };

  void find_candidates() {
    Scored scored = score_units(task_.graph, task_.coupling, task_.settings, task_.criterion);
    for (const GroupId g : task_.coupling.groups.ids()) {
      dense_.push_back(allocation_.masks.kept(g));
    }
    for (size_t u = 0; u < scored.units.size(); ++u) {
      const Unit& unit = scored.units[u];
      const Request& request = task_.settings.requests[unit.request];
      if (request.budget != Budget::kLatency) continue;
      int layers = 0;
      for (const GroupId g : unit.groups) {
        layers += layers_producing(task_.coupling.groups[g]);
      }
      std::vector<double> curve = score_curve(scored.candidates[u]);
      candidates_.push_back(
          {unit.groups, std::move(scored.candidates[u]), layers, std::move(curve)});
    }
    ranks_ = std::move(scored.ranks);
  }

  /// Replaces scores by the importance measured on the outputs.
  void measure_importance(const Coupled& network) {
    const ImportanceMeter meter(network, task_.r_squared);
    for (WidthCandidate& each : candidates_) {
      const Group& group = task_.coupling.groups[each.groups.front()];
      if (options_.progress) options_.progress("importance of " + group.id);
      std::vector<double> curve = meter.curve(each.groups, each.candidate);
      if (curve.empty()) continue;
      each.layers = 1;
      each.curve = std::move(curve);
    }
  }

  int layers_producing(const Group& group) const {
    const auto produces = [&](const Member& member) {
      const Weight& weight = task_.graph.weight(task_.graph.value(member.value).weight);
      return member.role == Role::kOut && weight.dims.size() >= 2;
    };
    const auto count = std::ranges::count_if(group.members, produces);
    return std::max(1, static_cast<int>(count));
  }

  AxisMasks masks_of(const WidthChoice& choice) {
    AxisMasks masks = allocation_.masks;
    for (const WidthCandidate& each : candidates_) {
      for (const GroupId g : each.groups) {
        keep_best(each.candidate, choice.kept[g], masks.keep[g]);
      }
    }
    given_back_ = keep_at_least_one(task_.coupling, ranks_, masks);
    return masks;
  }

  /// Measures the network under the masks; empty if it cannot be pruned that way.
  std::optional<double> share_of(const Coupled& network, const AxisMasks& masks) {
    const auto small = cut(network, masks);
    if (!small) return std::nullopt;
    const LatencyMeter::Pair pair = options_.meter->networks(task_.graph, small->graph());
    dense_seconds_.push_back(pair.dense);
    return pair.share;
  }

  /// The budget in seconds: the given milliseconds, or a share of the dense network's time.
  double wanted() const { return amount_ ? *amount_ * kMilli : wanted_share_ * dense_seconds(); }

  /// The dense network's time, as a minimum since noise can only add to it.
  double dense_seconds() const { return *std::ranges::min_element(dense_seconds_); }

  void search(const LatencyModel& model, const Coupled& network) {
    const double by_tables = model.seconds(dense_);
    outcome_.tables = by_tables;
    share_of(network, AxisMasks::all_kept(task_.coupling));
    wanted_share_ = 1 - latency_request(task_.settings)->ratio;
    amount_ = latency_request(task_.settings)->amount;
    outcome_.wanted = wanted();
    Aim aim(kAim * outcome_.wanted / dense_seconds() * by_tables);
    std::vector<Trial> trials;
    for (int attempt = 0; attempt < kMostAttempts && outcome_.rounds < options_.rounds; ++attempt) {
      Trial trial;
      trial.choice = choose_widths(model, candidates_, dense_, aim.seconds());
      const auto known = std::ranges::find_if(
          trials, [&](const Trial& other) { return other.choice.kept == trial.choice.kept; });
      if (known != trials.end()) {
        if (!aim.correct(miss(*known))) break;
        continue;
      }
      trial.masks = masks_of(trial.choice);
      trial.predicted = trial.choice.seconds / by_tables;
      const auto share = share_of(network, trial.masks);
      ++outcome_.rounds;
      trial.share = share.value_or(0);
      trials.push_back(std::move(trial));
      if (!share) break;
      const double missed = miss(trials.back());
      if (missed <= 0 && missed >= -options_.tolerance / 2) break;
      if (!trials.back().choice.feasible && missed > 0) break;
      if (!aim.correct(missed)) break;
    }
    take(best_of(trials));
  }

  /// By which share of the budget the trial takes longer; below 0: shorter.
  double miss(const Trial& trial) const { return trial.share * dense_seconds() / wanted() - 1; }

  /// Within budget and tolerance the one that retains most, otherwise the closest, where being too
  /// slow counts three times.
  const Trial& best_of(const std::vector<Trial>& trials) const {
    const auto distance = [&](const Trial& trial) {
      const double missed = miss(trial);
      return missed > 0 ? 3 * missed : -missed;
    };
    const auto fits = [&](const Trial& trial) {
      return miss(trial) <= 0 && miss(trial) >= -options_.tolerance;
    };
    return *std::ranges::max_element(trials, [&](const Trial& a, const Trial& b) {
      if (fits(a) != fits(b)) return fits(b);
      return fits(a) ? a.choice.value < b.choice.value : distance(a) > distance(b);
    });
  }

  void take(const Trial& trial) {
    allocation_.masks = trial.masks;
    masks_of(trial.choice);  // updates the kept channels
    allocation_.given_back += given_back_;
    outcome_.wanted = wanted();
    outcome_.dense = dense_seconds();
    outcome_.predicted = trial.predicted * outcome_.dense;
    outcome_.measured = trial.share * outcome_.dense;
    if (outcome_.holds(options_.tolerance)) return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "asked for %.3g ms: the closest that was found takes %.3g ms, of %.3g ms before",
                  outcome_.wanted / kMilli, outcome_.measured / kMilli, outcome_.dense / kMilli);
    allocation_.conflicts.push_back({kNone, text});
  }

  const LatencyTask& task_;
  const LatencyBudgetOptions& options_;
  LatencyTables& tables_;
  Allocation& allocation_;
  std::optional<double> amount_;  ///< milliseconds
  double wanted_share_ = 1;       ///< of the dense network's time, where there is no amount
  std::vector<WidthCandidate> candidates_;
  PerGroup<std::vector<double>> ranks_;
  PerGroup<int> dense_;  ///< channels at first
  std::vector<double> dense_seconds_;
  int given_back_ = 0;
  LatencyOutcome outcome_;
};

}  // namespace

bool asks_for_latency(const Settings& settings) { return latency_request(settings) != nullptr; }

LatencyOutcome spend_latency(const LatencyTask& task, const LatencyBudgetOptions& options,
                             LatencyTables& tables, Allocation& allocation) {
  if (options.meter == nullptr) throw errors::no_meter();
  return Spender(task, options, tables, allocation).run();
}

}  // namespace parsimony
