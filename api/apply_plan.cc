#include <absl/container/flat_hash_map.h>

#include <optional>
#include <string_view>

#include "parsimony/api/prune.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/slice.h"
#include "parsimony/speedup/make_plan.h"

namespace parsimony {
namespace {

using ShapeChanges = absl::flat_hash_map<std::string_view, ShapeChange>;

/// Returns weights that several values refer to. Their readers may keep different indices, and then
/// only one of them reads the tensor with the weight's name.
IdVector<WeightId, bool> shared_weights(const Graph& graph) {
  IdVector<WeightId, bool> seen(graph.weights.size());
  IdVector<WeightId, bool> shared(graph.weights.size());
  for (const Value& value : graph.values) {
    if (value.weight == kNone) continue;
    shared[value.weight] = shared[value.weight] || seen[value.weight];
    seen[value.weight] = true;
  }
  return shared;
}

/// Adds the plan's cuts of shared weights.
void add_cuts(const Plan& plan, const Graph& graph, const IdVector<WeightId, bool>& shared,
              ShapeChanges& changes) {
  if (!contains(shared, true)) return;
  const TensorCuts cuts = cuts_by_tensor(plan);
  for (const WeightId w : graph.weights.ids()) {
    const Weight& weight = graph.weight(w);
    const auto cut = cuts.find(weight.name);
    if (!shared[w] || cut == cuts.end()) continue;
    changes.emplace(weight.name, ShapeChange{weight.dims, sliced(weight.dims, cut->second)});
  }
}

/// Replays the plan and updates declared shapes. `after` may cover fewer values.
void apply_to_graph(const Plan& plan, const Graph& graph, const ValueShapes& before,
                    const ValueShapes& after, ModelEditor& editor) {
  ShapeChanges changes;
  const IdVector<WeightId, bool> shared = shared_weights(graph);
  add_cuts(plan, graph, shared, changes);
  for (const ValueId v : graph.values.ids()) {
    if (v.index() >= after.size()) break;
    const WeightId weight = graph.values[v].weight;
    if (weight != kNone && shared[weight]) continue;
    const auto& was = before[v];
    const auto& is = after[v];
    if (!was || !is || *was == *is) continue;
    changes.emplace(graph.values[v].name, ShapeChange{*was, *is});
  }
  replay(plan, editor);
  editor.update_shapes([&](std::string_view name) -> std::optional<ShapeChange> {
    const auto it = changes.find(name);
    return it == changes.end() ? std::nullopt : std::optional(it->second);
  });
}

}  // namespace

void apply_plan(const Plan& plan, const Graph& graph, const Probe& probe, ModelEditor& editor) {
  if (plan.empty()) return;
  GraphEditor trial(graph);
  replay(plan, trial);
  const Facts before = infer(graph, probe);
  const Facts after = infer(trial.graph(), small_probe(graph, plan, probe));
  apply_to_graph(plan, graph, before.shapes, after.shapes, editor);
}

void apply_plan(const Pruning& pruning, const Graph& graph, ModelEditor& editor) {
  if (pruning.plan.empty()) return;
  apply_to_graph(pruning.plan, graph, pruning.analysis.facts.shapes, pruning.small_shapes, editor);
}

}  // namespace parsimony
