// Prunes as far as a metric allows: `--budget metric=-1%`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/prune_model.h"

namespace parsimony {

/// A bound on a metric: how much worse than the dense network's it may be.
struct MetricBudget {
  double amount = 0;
  enum class Unit : uint8_t {
    kRelative,  ///< "-1%": of the dense network's
    kPoints,    ///< "-0.5": in the metric's own unit
    kValue,     ///< "0.9": the metric itself
  } unit = Unit::kRelative;

  /// Returns the lowest allowed value of the metric; the highest, where lower is better.
  double bound(double dense, bool lower_is_better) const;
};

/// Parses "metric=-1%", "metric=-0.5" or "metric=0.9"; empty for a budget of anything else.
/// @throws ConfigError for a number that is none
std::optional<MetricBudget> parse_metric_budget(std::string_view budget);

/// A pruned network that a search tried.
struct MetricTrial {
  double macs = 1;                   ///< the share of the MACs that may remain
  std::optional<double> value = {};  ///< of the metric; empty if the cut or the metric failed
  bool within = false;               ///< of the bound
  std::string failure = {};          ///< why there is no value
};

/// The goal of a search for a cut, and the function that measures the metric.
struct MetricSearch {
  std::string metric;            ///< its name, for messages
  double bound = 0;              ///< at least; at most, where lower is better
  bool lower_is_better = false;  ///< of the metric
  int runs = 7;                  ///< cuts that are tried
  /// Measures the metric of the model in its pruned state. @throws ModelError if it has no value
  std::function<double(const PruneResult& small)> measure;
  std::function<void(const MetricTrial& trial)> tried = {};  ///< called after each; may be empty
};

struct MetricOutcome {
  PruneResult result;
  std::vector<MetricTrial> trials;
};

/// Prunes the model in place as far as a metric allows. A bisection over the share of remaining
/// MACs, which replaces the amount in the request, repeatedly prunes the model without a proof and
/// restores it; then the model is pruned like prune_model() to the smallest share within the bound.
/// Other limits of the request apply as well. All trials share one analysis: shapes, groups,
/// statistics of data.
/// @throws ModelError if no trial is within the bound; ConfigError for fewer than one run;
/// otherwise as prune_model
MetricOutcome prune_within(EditableModel& model, const PruneRequest& request,
                           const PruneServices& services, const MetricSearch& search);

}  // namespace parsimony
