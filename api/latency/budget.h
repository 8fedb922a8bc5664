// A budget of milliseconds: widths by tables, then corrected by what the whole network takes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "parsimony/api/latency/measure.h"
#include "parsimony/api/worth.h"
#include "parsimony/pruners/allocate.h"

namespace parsimony {

struct LatencyBudgetOptions {
  LatencyMeter* meter = nullptr;  ///< must be given where a budget is one of latency
  // What LatencyProfiler makes one from, where none is given.
  std::string engine = "libtorch";  ///< or "onnxruntime"
  std::string onnxruntime = {};     ///< path of its library; empty: where it is usually found
  std::string table = {};           ///< file of the tables; empty: in the cache
  int64_t batch = 1;                ///< samples per run, where the network leaves that open
  double tolerance = 0.05;          ///< share of the budget by which the small network may miss it
  int rounds = 6;                   ///< networks that are measured at most
  std::function<void(std::string_view what)> progress = {};
};

/// What came of it. Times are in seconds.
struct LatencyOutcome {
  double wanted = 0;
  double dense = 0;      ///< the whole network as it was: the shortest of several measurements
  double tables = 0;     ///< the same as the tables add up, before anything was corrected
  double predicted = 0;  ///< the small network by the tables, in proportion to the dense one
  double measured = 0;   ///< its share of the dense one's time, measured in turn, times `dense`
  int rounds = 0;        ///< networks that were measured
  int pieces = 0;        ///< that the network has
  int fresh = 0;         ///< of their tables, those that were measured now

  bool holds(double tolerance) const {
    return measured > 0 && measured <= wanted * (1 + tolerance) &&
           measured >= wanted * (1 - tolerance);
  }
};

/// A network and what was asked of it.
struct LatencyTask {
  const Graph& graph;
  const Probe& probe;
  const Coupling& coupling;
  const Settings& settings;
  CriterionOptions criterion;
  /// With it a group's widths are worth what the outputs keep when that group alone is so narrow;
  /// without it, the share of the scores.
  Fidelity fidelity = {};
};

/// Is there a request with a budget of latency?
bool asks_for_latency(const Settings& settings);

/// Chooses the masks of all groups that follow a request with a budget of latency; the first such
/// request says how many milliseconds, or which share of the dense network's time goes. Tables that
/// are missing are measured and added to `tables`. The network that the tables suggest is measured
/// as a whole, beside the dense one; what they misjudged corrects the aim, until the small one
/// takes no more than the budget and no less by half the tolerance, or `rounds` are over. Of
/// several the one that keeps most (see choose_widths) is taken of those within budget and
/// tolerance, else the one that misses the budget by least.
/// @throws UnsupportedError without a meter, or if the network cannot be run
LatencyOutcome spend_latency(const LatencyTask& task, const LatencyBudgetOptions& options,
                             LatencyTables& tables, Allocation& allocation);

}  // namespace parsimony
