// The largest cut that a metric allows: `--budget metric=-1%`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/cli/command.h"
#include "parsimony/cli/prune_options.h"
#include "parsimony/report/prune_report.h"

namespace parsimony::cli {

/// How much worse than the dense network's a metric may be.
struct MetricBudget {
  double amount = 0;
  enum class Unit : uint8_t {
    kShare,   ///< "-1%": of the dense network's
    kPoints,  ///< "-0.5": in the metric's own unit
    kValue,   ///< "0.9": the metric itself
  } unit = Unit::kShare;
};

/// Of "metric=-1%", "metric=-0.5" or "metric=0.9"; empty for a budget of anything else.
/// @throws ConfigError for a number that is none
std::optional<MetricBudget> parse_metric_budget(const std::string& budget);

/// Prunes again and again, each time to the share of the MACs that a bisection asks for, then once
/// more to the smallest share whose metric is within the budget.
/// @param prune  one pruning; the metrics of the model as it is, in the last with those trials
/// @throws ConfigError without one metric, or beside another amount; ModelError if no cut is within
void prune_within(
    const MetricBudget& budget, const PruneCommandOptions& options, const Session& session,
    const std::function<void(const PruneCommandOptions& options, const Session& session,
                             std::vector<MetricRow> metrics)>& prune);

}  // namespace parsimony::cli
