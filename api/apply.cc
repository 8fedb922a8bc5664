#include "parsimony/api/apply.h"

#include <absl/container/flat_hash_map.h>

#include <string_view>

#include "parsimony/graph/graph_editor.h"

namespace parsimony {

namespace {

using ShapeChanges = absl::flat_hash_map<std::string_view, ShapeChange>;

/// Makes the plan's changes on the graph alone: which shapes become others?
ShapeChanges try_out(const Plan& plan, const Graph& graph, const Probe& probe) {
  GraphEditor trial(graph);
  replay(plan, trial);
  Facts before = infer(graph, probe);
  Facts after = infer(trial.graph(), probe);
  ShapeChanges changes;
  changes.reserve(graph.values.size());
  for (const ValueId v : graph.values.ids()) {
    auto& was = before.shapes[v];
    auto& is = after.shapes[v];
    if (!was || !is || *was == *is) continue;
    changes.emplace(graph.values[v].name, ShapeChange{std::move(*was), std::move(*is)});
  }
  return changes;
}

}  // namespace

void apply_plan(const Plan& plan, const Graph& graph, const Probe& probe, ModelEditor& editor) {
  if (plan.empty()) return;
  const ShapeChanges changes = try_out(plan, graph, probe);
  replay(plan, editor);
  editor.update_shapes([&](std::string_view name) -> std::optional<ShapeChange> {
    const auto it = changes.find(name);
    return it == changes.end() ? std::nullopt : std::optional(it->second);
  });
}

}  // namespace parsimony
