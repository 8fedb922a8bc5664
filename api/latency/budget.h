// Latency budgets: widths are chosen by tables, then corrected by measuring the whole network.
#pragma once

#include "parsimony/api/importance.h"
#include "parsimony/api/latency/measure.h"
#include "parsimony/api/prune.h"
#include "parsimony/pruners/allocate.h"

namespace parsimony {

/// A network and its settings.
struct LatencyTask {
  const Graph& graph;
  const Probe& probe;
  const Facts& sample;  ///< shapes with which other amounts are counted
  const Coupling& coupling;
  const Settings& settings;
  CriterionOptions criterion;
  /// If set, the importance of a group's widths is the R² of the outputs when only that group is
  /// narrowed; otherwise it is the share of the scores.
  RSquared r_squared = {};
  LatencyMeter* meter = nullptr;
};

/// Returns whether a request has a latency budget.
bool asks_for_latency(const Settings& settings);

/// Chooses the masks of all groups that follow a request with a latency budget; the first such
/// request sets the milliseconds, or the share of the dense network's time to save. Missing tables
/// are measured and added to `tables`. The network that the tables suggest is measured as a whole,
/// interleaved with the dense one, and the target is corrected by the prediction error, until the
/// small network takes no more than the budget and is within half the tolerance of it, or after
/// `rounds` attempts. Of the networks within budget and tolerance the one that retains most (see
/// choose_widths) is chosen, otherwise the one closest to the budget. If the request limits other
/// amounts too, networks that exceed them are not tried, and the result may be faster than
/// required.
/// @throws UnsupportedError without a meter, or if the network cannot be run
LatencyOutcome spend_latency(const LatencyTask& task, const LatencySettings& options,
                             LatencyTables& tables, Allocation& allocation);

}  // namespace parsimony
