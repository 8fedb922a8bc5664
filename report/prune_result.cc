#include <algorithm>
#include <string>

#include "parsimony/api/latency/profiler.h"
#include "parsimony/masks/memory.h"
#include "parsimony/report/inspect.h"
#include "parsimony/report/prune_report.h"

namespace parsimony {
namespace {

/// Why the plan is empty.
std::string reason_for_nothing(const Pruning& pruning) {
  if (pruning.analysis.coupling.groups.empty()) {
    return "no axis of this network can shrink; `parsimony explain` says why";
  }
  for (const auto& keep : pruning.allocation.masks.keep) {
    if (std::find(keep.begin(), keep.end(), 0) != keep.end()) return "the plan is empty";
  }
  if (!pruning.notes.empty()) return "no group is pruned, see the notes";
  return "what was asked for removes no channel";
}

ConstantsReport constants_report(const Pruning& pruning) {
  ConstantsReport report{pruning.absorbers, {}, pruning.masked};
  for (const TensorUpdate& update : pruning.plan.updates) {
    report.updates.push_back({update.tensor, update.reason});
  }
  return report;
}

}  // namespace

PruneReport report_of(const PruneResult& result) {
  const Graph& graph = result.graph;
  const Analysis& analysis = result.analysis;
  PruneReport report;
  for (const StageTime& time : result.times) {
    report.timings.emplace_back(time.stage, time.seconds);
  }
  report.inputs = input_rows(graph, analysis.sample, analysis.probe);
  report.uncounted = uncounted(graph, analysis.sample);
  report.before = result.dense;
  report.after = result.small;
  if (!result.depth) {
    const ActivationMemory memory(graph, analysis.sample, analysis.coupling);
    report.memory = MemoryRow{memory.peak(AxisMasks::all_kept(analysis.coupling)),
                              memory.peak(result.allocation.masks)};
  }
  if (const auto& rounding = result.rounding) {
    report.rounding = RoundingRow{std::string(name_of(rounding->target)), rounding->score,
                                  rounding->score_without, rounding->macs_without, rounding->time};
  }
  report.depth = result.depth;
  report.proof = result.proof;
  report.recovery = result.recovery;
  report.elements = result.elements;
  if (result.plan.constants == Constants::kExact) report.constants = constants_report(result);
  report.groups = outcomes(graph, analysis.coupling, result.allocation.masks);
  for (const CutScale& cut : result.scales) {
    report.scales.push_back(row_of(graph, analysis.coupling, cut, !result.plan.scales.empty()));
  }
  report.unpruned_dims = result.plan.unpruned_dims;
  report.notes = result.notes;
  if (result.plan.empty()) {
    report.notes.insert(report.notes.begin(), "nothing was pruned: " + reason_for_nothing(result));
  }
  return report;
}

LatencyRow row_of(const LatencyOutcome& outcome, const LatencyProfiler& profiler) {
  LatencyRow row;
  row.engine = profiler.engine();
  row.threads = profiler.threads();
  row.wanted = outcome.wanted;
  row.dense = outcome.dense;
  row.tables = outcome.tables;
  row.predicted = outcome.predicted;
  row.measured = outcome.measured;
  row.subgraphs = outcome.subgraphs;
  row.fresh = outcome.fresh;
  row.networks = outcome.rounds;
  row.command = profiler.command();
  row.other_machine = profiler.other_machine();
  row.noise = outcome.noise;
  row.table_error = outcome.table_error;
  for (const auto& [key, table] : profiler.tables()) {
    if (row.oldest == 0 || table.measured < row.oldest) row.oldest = table.measured;
  }
  return row;
}

}  // namespace parsimony
