// From a graph and a config list to a plan, for every front end, and from a plan to a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/prune_request.h"
#include "parsimony/api/prune_services.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/masks/cost.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/allocate.h"
#include "parsimony/speedup/observation.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The duration of one stage, and the samples that it read from data.
struct StageTime {
  std::string stage;
  double seconds = 0;
  int64_t samples = 0;
};

/// The analysis of a network, before any decision.
struct Analysis {
  Probe probe;
  Facts facts;
  Coupling coupling;
  Facts sample;  ///< `facts` for a batch of one if the batch is symbolic; used to count costs
};

/// Infers shapes and solves for groups. Separates shared vectors in `graph`.
/// @throws ModelError
Analysis analyse(Graph& graph, const PruneRequest& request = {});

/// Coupling options from the configuration, for the whole network or the layers of an entry, with
/// the request's own as defaults. `settings` are those of the graph's layers.
CouplingOptions coupling_options(const PruneRequest& request, const Settings& settings);

/// The cost and the benefit of rounding widths to those that suit a target.
struct RoundingOutcome {
  Target target = Target::kGeneric;
  double score = 1;                 ///< share of all scores that is kept
  double score_without = 1;         ///< the same without rounding
  int64_t macs_without = 0;         ///< multiply-adds of that network
  std::optional<double> time = {};  ///< of the rounded network relative to that one, if measured
};

/// The outcome of a latency budget. Times are in seconds.
struct LatencyOutcome {
  double requested = 0;
  double dense = 0;        ///< the dense network: the shortest of several measurements
  double tables = 0;       ///< the dense network according to the tables, before correction
  double predicted = 0;    ///< the small network by the tables, scaled by the dense one
  double measured = 0;     ///< its interleaved time relative to the dense one, times `dense`
  double noise = 0;        ///< relative standard error of `measured`; 0 if not known
  int rounds = 0;          ///< networks measured; 0: `measured` is by the tables alone
  int subgraphs = 0;       ///< subgraphs of the network
  int fresh = 0;           ///< tables that were measured in this run
  double table_error = 0;  ///< median relative error of these at held-out widths
  bool limited = false;    ///< other amounts than time leave no more than this

  bool holds(double tolerance) const {
    return measured > 0 && measured <= requested * (1 + tolerance) &&
           (limited || measured >= requested * (1 - tolerance));
  }
};

/// A pruning decision: the parts that are removed, and their effect.
struct Pruning {
  Analysis analysis;
  Allocation allocation;
  Plan plan;  ///< complete except for the source's fingerprint
  /// Shapes of the graph's values after pruning; empty if none changes.
  ValueShapes small_shapes;
  std::vector<CutScale> scales;  ///< scales that encode a pruned size, kept or updated by the plan
  Cost dense;
  Cost small;
  std::optional<LatencyOutcome> latency;    ///< of a latency budget
  std::optional<RoundingOutcome> rounding;  ///< of a target; not with a latency budget
  std::vector<MaskOutcome> masked;          ///< with exact constants, per masked tensor
  int absorbers = 0;  ///< channels that are kept because they absorb constants of others
  std::vector<ElementMask> element_masks;  ///< of tensors that lose single elements
  std::vector<ElementOutcome> elements;    ///< their outcomes, in the same order
  std::vector<std::string> notes;          ///< conflicts, layers that could not be pruned
  std::vector<StageTime> times;
};

/// Decides what to remove and checks on the graph that the result is consistent. The model itself
/// is not changed; see `prune_model` (api/prune_model.h).
///
///     auto graph = onnx_io::to_graph(file);
///     Pruning pruning = plan_pruning(graph, read_config("l1.json"));
///     apply_plan(pruning, graph, editor);
///
/// @throws ConfigError, ModelError, UnsupportedError
Pruning plan_pruning(Graph& graph, const PruneRequest& request, const PruneServices& services = {});

/// Applies the plan through `editor` and updates the declared shapes of intermediate values.
/// `graph` is the model before the edit, `probe` the sizes of its inputs. The plan is first tried
/// on the graph alone, so that a plan that does not fit changes nothing.
///
///     Graph graph = onnx_io::to_graph(file);
///     apply_plan(Plan::load("p.json"), graph, choose_probe(graph), editor);
///
/// @throws ModelError if the plan does not fit the model
void apply_plan(const Plan& plan, const Graph& graph, const Probe& probe, ModelEditor& editor);

/// Applies a plan that was validated when it was made, without trying it first; `graph` is the one
/// passed to `plan_pruning`.
void apply_plan(const Pruning& pruning, const Graph& graph, ModelEditor& editor);

}  // namespace parsimony
