#include "parsimony/api/latency/budget.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/candidates.h"
#include "parsimony/pruners/latency/widths.h"
#include "parsimony/pruners/network_limits.h"

namespace parsimony {
namespace {

constexpr double kAim = 0.985;  ///< of the budget: a margin for noise
constexpr int kMostAttempts = 24;
constexpr int kRounds = 6;
constexpr int kRoundsByCommand = 10;  // commands have noisier times
constexpr double kMilli = 1e-3;

const Request* latency_request(const Settings& settings) {
  const auto& all = settings.requests;
  const auto it = std::ranges::find_if(
      all, [](const Request& request) { return request.budget == Budget::kLatency; });
  return it == all.end() ? nullptr : &*it;
}

/// Finds the target for the tables with which the network takes the requested time.
class Aim {
 public:
  explicit Aim(double seconds) : seconds_(seconds) {}

  double seconds() const { return seconds_; }

  /// Corrects the target by the relative excess of the last network, known to `error`, bracketed
  /// between targets that were too slow and too fast. @returns false if the bracket is empty
  bool correct(double missed, double error) {
    if (std::abs(missed) > 2 * error) (missed > 0 ? slow_ : quick_) = seconds_;
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

class LatencySpender {
 public:
  LatencySpender(const LatencyTask& task, const LatencySettings& options, LatencyTables& tables,
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
    TablesMeasured measured = measure_subgraphs(network, subgraphs, *task_.meter, tables_);
    outcome_.fresh = measured.count;
    if (!measured.errors.empty()) {
      const auto middle = measured.errors.begin() + measured.errors.size() / 2;
      std::ranges::nth_element(measured.errors, middle);
      outcome_.table_error = *middle;
    }
    const LatencyModel model(task_.coupling, subgraphs, tables_);
    Quantities quantities(task_.graph, task_.sample, task_.coupling);
    const NetworkLimits limits(quantities, task_.coupling, latency_request(task_.settings)->also);
    limit(limits, model);
    search(model, network);
    for (std::string& text : limits.missed(allocation_.masks)) {
      allocation_.conflicts.push_back({kNone, std::move(text)});
    }
    return outcome_;
  }

 private:
  struct Trial {
    WidthChoice choice;
    AxisMasks masks;
    double share = 1;      ///< of the dense network's time
    double noise = 0;      ///< relative standard error of `share`
    double predicted = 0;  ///< the share predicted by the tables
    bool limited = false;  ///< limited by other amounts
  };
  /// A trial's share, estimated from all measurements.
  struct Estimate {
    double share = 1;
    double error = 0;  ///< relative standard error
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
      std::vector<double> curve = meter.curve(each.groups, each.candidate);
      if (curve.empty()) continue;
      each.layers = 1;
      each.curve = std::move(curve);
    }
  }

  int layers_producing(const Group& group) const {
    const auto produces = [&](const Member& member) {
      const Weight& weight = task_.graph.weight_of(member.value);
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
    given_back_ = keep_enough(task_.coupling, ranks_, masks);
    return masks;
  }

  /// Measures the network under the masks, relative to the dense one. @returns false if it cannot
  /// be pruned that way, or the device stops responding
  bool measure(const Coupled& network, Trial& trial) {
    const auto small = cut(network, trial.masks);
    if (!small) {
      trial.share = 0;
      return false;
    }
    std::optional<LatencyMeter::Pair> pair;
    try {
      pair = task_.meter->networks(task_.graph, small->graph());
    } catch (const ModelError& error) {
      if (dense_seconds_.empty()) throw;
      allocation_.conflicts.push_back({kNone, error.what()});
      return false;
    }
    by_tables_ = !pair;
    dense_seconds_.push_back(pair ? pair->dense : outcome_.tables);
    trial.share = pair ? pair->share : trial.predicted;
    trial.noise = pair ? pair->noise : 0;
    return true;
  }

  /// Finds the time, by the tables, of the largest network within limits of other amounts.
  void limit(const NetworkLimits& limits, const LatencyModel& model) {
    const auto holds = [&](double seconds) {
      return limits.hold(masks_of(choose_widths(model, candidates_, dense_, seconds)));
    };
    const double dense = model.seconds(dense_);
    if (holds(dense)) return;
    constexpr int kHalvings = 12;
    most_seconds_ = 0;
    double too_long = dense;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (most_seconds_ + too_long) / 2;
      (holds(middle) ? most_seconds_ : too_long) = middle;
    }
  }

  /// Returns the budget in seconds: the requested milliseconds, or a share of the dense network's
  /// time.
  double requested() const {
    return amount_ ? *amount_ * kMilli : requested_share_ * dense_seconds();
  }

  /// Returns the dense network's time, the minimum since noise can only add to it.
  double dense_seconds() const { return *std::ranges::min_element(dense_seconds_); }

  void search(const LatencyModel& model, const Coupled& network) {
    const double by_tables = model.seconds(dense_);
    outcome_.tables = by_tables;
    Trial dense{.choice = {}, .masks = AxisMasks::all_kept(task_.coupling), .predicted = 1};
    measure(network, dense);
    requested_share_ = 1 - latency_request(task_.settings)->ratio;
    amount_ = latency_request(task_.settings)->amount;
    if (amount_ && !task_.settings.force) {
      check_share({.budget = Budget::kLatency, .amount = amount_}, dense_seconds() / kMilli);
    }
    outcome_.requested = requested();
    Aim aim(std::min(most_seconds_, kAim * outcome_.requested / dense_seconds() * by_tables));
    const double precise = options_.tolerance / 4;
    const int rounds = options_.rounds > 0             ? options_.rounds
                       : options_.command.line.empty() ? kRounds
                                                       : kRoundsByCommand;
    for (int attempt = 0; attempt < kMostAttempts && outcome_.rounds < rounds; ++attempt) {
      Trial fresh;
      fresh.limited = aim.seconds() >= most_seconds_;
      fresh.choice =
          choose_widths(model, candidates_, dense_, std::min(aim.seconds(), most_seconds_));
      const auto known = std::ranges::find_if(
          trials_, [&](const Trial& other) { return other.choice.kept == fresh.choice.kept; });
      const bool again = known != trials_.end();
      if (again && estimate(*known).error <= precise) {
        if (!aim.correct(miss(*known), 0)) break;
        continue;
      }
      if (!again) {
        fresh.masks = masks_of(fresh.choice);
        fresh.share = fresh.predicted = fresh.choice.seconds / by_tables;
      }
      const bool measured = measure(network, again ? *known : fresh);
      if (!again && (measured || trials_.empty())) trials_.push_back(std::move(fresh));
      if (!measured) break;
      if (!by_tables_) ++outcome_.rounds;
      const Trial& trial = again ? *known : trials_.back();
      const double missed = miss(trial);
      const double error = estimate(trial).error;
      if (missed <= 0 && missed >= -options_.tolerance / 2 && error <= precise) break;
      if (trial.limited && missed <= 0) break;
      if (!trial.choice.feasible && missed > 0) break;
      if (!aim.correct(missed, error)) break;
    }
    take(best_of());
  }

  /// Combines noisy measurements with those of similar networks, assuming that the logarithm of
  /// measured over predicted time differs by at most `kSlope` times the logarithm of the
  /// predictions' ratio.
  Estimate estimate(const Trial& trial) const {
    constexpr double kSlope = 0.5;
    if (trial.noise <= 0) return {trial.share, 0};
    double sum = 0;
    double weights = 0;
    for (const Trial& other : trials_) {
      if (other.share <= 0 || other.predicted <= 0) continue;
      const double apart = kSlope * std::log(other.predicted / trial.predicted);
      const double weight = 1 / (other.noise * other.noise + apart * apart);
      sum += weight * std::log(other.share / other.predicted);
      weights += weight;
    }
    return {trial.predicted * std::exp(sum / weights), 1 / std::sqrt(weights)};
  }

  /// Returns the relative excess over the budget; negative if the trial is faster.
  double miss(const Trial& trial) const {
    return estimate(trial).share * dense_seconds() / requested() - 1;
  }

  /// Returns the trial within budget and tolerance that retains most, otherwise the closest, where
  /// too slow counts three times.
  const Trial& best_of() const {
    const auto distance = [&](const Trial& trial) {
      const double missed = miss(trial);
      return missed > 0 ? 3 * missed : -missed;
    };
    const auto fits = [&](const Trial& trial) {
      return miss(trial) <= 0 && (trial.limited || miss(trial) >= -options_.tolerance);
    };
    return *std::ranges::max_element(trials_, [&](const Trial& a, const Trial& b) {
      if (fits(a) != fits(b)) return fits(b);
      return fits(a) ? a.choice.value < b.choice.value : distance(a) > distance(b);
    });
  }

  void take(const Trial& trial) {
    allocation_.masks = trial.masks;
    masks_of(trial.choice);  // updates the kept channels
    allocation_.given_back += given_back_;
    outcome_.requested = requested();
    outcome_.dense = dense_seconds();
    outcome_.predicted = trial.predicted * outcome_.dense;
    const Estimate found = estimate(trial);
    outcome_.measured = found.share * outcome_.dense;
    outcome_.noise = found.error;
    outcome_.limited = trial.limited;
    if (outcome_.holds(options_.tolerance)) return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "requested %.3g ms: the closest network found takes %.3g ms, down from %.3g ms",
                  outcome_.requested / kMilli, outcome_.measured / kMilli, outcome_.dense / kMilli);
    allocation_.conflicts.push_back({kNone, text});
  }

  const LatencyTask& task_;
  const LatencySettings& options_;
  LatencyTables& tables_;
  Allocation& allocation_;
  std::optional<double> amount_;  ///< milliseconds
  double requested_share_ = 1;    ///< of the dense network's time, if there is no amount
  std::vector<WidthCandidate> candidates_;
  PerGroup<std::vector<double>> ranks_;
  PerGroup<int> dense_;  ///< channels at first
  std::vector<double> dense_seconds_;
  std::vector<Trial> trials_;
  bool by_tables_ = false;  ///< whole networks are not measured
  double most_seconds_ = std::numeric_limits<double>::infinity();  ///< bound by other amounts
  int given_back_ = 0;
  LatencyOutcome outcome_;
};

}  // namespace

bool asks_for_latency(const Settings& settings) { return latency_request(settings) != nullptr; }

LatencyOutcome spend_latency(const LatencyTask& task, const LatencySettings& options,
                             LatencyTables& tables, Allocation& allocation) {
  if (task.meter == nullptr) {
    throw UnsupportedError("a latency budget requires a meter in PruneServices");
  }
  return LatencySpender(task, options, tables, allocation).run();
}

}  // namespace parsimony
