// The report of a run of `prune`, as text and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/metric_budget.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/masks/cost.h"
#include "parsimony/masks/mask.h"
#include "parsimony/report/rows.h"
#include "parsimony/speedup/observation.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

class LatencyProfiler;

struct GroupOutcome {
  std::string id;
  int size = 0;  ///< channels before
  int kept = 0;  ///< and after
  bool mixes = false;
  std::string granularity;
  std::vector<std::string> layers;  ///< nodes whose matrices produce the channels
};

struct ReportedFile {
  std::string path;
  std::string sha256;  ///< empty if not computed
  int64_t bytes = 0;   ///< of the model file; external data is not counted
};

/// The outcome of a latency budget. Times are in seconds.
struct LatencyRow {
  std::string engine;  ///< "libtorch 2.15.0"
  int threads = 1;
  double requested = 0;
  double dense = 0;          ///< the dense network, measured
  double tables = 0;         ///< the dense network, according to the tables
  double predicted = 0;      ///< the small one
  double measured = 0;       ///< the small network, from its time relative to the dense one
  int subgraphs = 0;         ///< subgraphs of the network
  int fresh = 0;             ///< tables that were measured in this run
  int64_t oldest = 0;        ///< when the oldest time was measured: seconds since 1970
  int networks = 0;          ///< whole networks measured; 0: `measured` is by the tables alone
  std::string command = {};  ///< command that measured; empty: the engine did
  std::string other_machine =
      {};                  ///< machine of the tables if nothing was measured; empty: this one
  double noise = 0;        ///< relative standard error of `measured`; 0: not known
  double table_error = 0;  ///< median relative error of new tables at widths in between
};

/// The cost and the benefit of rounding widths to those that suit a target.
struct RoundingRow {
  std::string target;          ///< "x86-avx2"
  double score = 1;            ///< share of all scores that is kept
  double score_without = 1;    ///< the same without rounding
  int64_t macs_without = 0;    ///< multiply-adds of that network
  std::optional<double> time;  ///< of the rounded network relative to that one
};

/// The outcome of exact constants.
struct ConstantsReport {
  int absorbers = 0;                  ///< channels that are kept to absorb the constants of others
  std::vector<TensorUpdate> updates;  ///< without values
  std::vector<MaskOutcome> masks;     ///< per masked tensor
};

/// The value of a metric, built-in or computed by a user's command, before and after pruning.
struct MetricRow {
  std::string command;
  bool lower_is_better = false;
  double before = 0;
  std::optional<double> after;  ///< empty if the command failed
  std::string output_before;    ///< of the command
  std::string output_after;
  std::optional<double> bound = {};      ///< of a budget: the value to reach
  std::vector<MetricTrial> trials = {};  ///< of the search within the bound
};

/// Peak bytes of activations, see ActivationMemory.
struct MemoryRow {
  int64_t before = 0;
  int64_t after = 0;
  bool requested = false;  ///< whether there was a budget for it
};

/// The outcome for a tensor of a checkpoint that was cut with the network.
struct CheckpointTensorRow {
  std::string tensor;   ///< keys from the root, joined by '/'
  std::string weight;   ///< weight that it is, or belongs to; empty: none
  std::string matched;  ///< how it was matched, or its relation to the weight; empty: not matched
  Shape before;
  Shape after;
  std::string why_left;  ///< empty unless it should have been cut
};

struct CheckpointReport {
  std::string path;
  std::string result;
  std::vector<std::string> copies;  ///< prefixes of the copies of the network
  int64_t cut = 0;                  ///< tensors of the copies
  int64_t states = 0;               ///< of optimizers
  std::vector<std::string> left;    ///< with reasons
  std::vector<CheckpointTensorRow> tensors;
};

struct PruneReport {
  std::string command;  ///< as it was typed
  ReportedFile source;
  ReportedFile result;
  std::vector<InputRow> inputs;        ///< for which MACs are counted
  std::vector<std::string> uncounted;  ///< nodes not counted in MACs, see `uncounted`
  Cost before;
  Cost after;
  std::optional<MemoryRow> memory;           ///< unless blocks were removed
  std::optional<DepthReport> depth;          ///< if blocks were to be removed
  std::optional<ConstantsReport> constants;  ///< if constants were folded
  std::vector<ElementOutcome> elements;      ///< of tensors that lost single elements
  std::vector<GroupOutcome> groups;
  std::vector<ScaleRow> scales;  ///< scales that encode a pruned size
  std::vector<UnprunedDim> unpruned_dims;
  Proof proof;
  std::optional<RecoveryReport> recovery;
  std::optional<LatencyRow> latency;
  std::optional<RoundingRow> rounding;
  std::vector<MetricRow> metrics;
  std::optional<CheckpointReport> checkpoint;  ///< if one was cut
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, double>> timings;        ///< stage and seconds
  std::vector<std::pair<std::string, int64_t>> samples = {};  ///< stage and samples that it read
};

/// Returns the report of a result, also if no file was written: everything except files, command
/// and measurements.
///
///     print(to_text(report_of(prune_file("in.onnx", "out.onnx", {.ratio = 0.5}))));
PruneReport report_of(const PruneResult& result);

/// Returns the outcome with the measuring engine or command, and the age of the times.
LatencyRow row_of(const LatencyOutcome& outcome, const LatencyProfiler& profiler);

/// Returns the outcome of every group.
std::vector<GroupOutcome> outcomes(const Graph& graph, const Coupling& coupling,
                                   const AxisMasks& masks);

/// Returns the number of elements set to zero in the remaining tensors.
int64_t zeroed(const PruneReport& report);

/// Returns {"parsimony_report": 1, "command": …, "source": …, "result": …, "params": …, …}.
std::string to_json(const PruneReport& report);

/// Returns {"parsimony_recovery": 1, "samples": …, "before": …, "steps": …, "notes": …}.
std::string to_json(const RecoveryReport& report);

/// Renders before and after in a few lines; with `all` also each group and each unpruned axis.
std::string to_text(const PruneReport& report, bool all = false);

/// Renders the stages with their times.
std::string timings_text(const PruneReport& report);

}  // namespace parsimony
