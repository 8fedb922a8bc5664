#include "parsimony/api/apply.h"

#include <string_view>
#include <unordered_map>

#include "parsimony/graph/graph_editor.h"

namespace parsimony {

void apply_plan(const Plan& plan, const Graph& graph, const Probe& probe, ModelEditor& editor) {
  if (plan.empty()) return;
  GraphEditor trial(graph);
  replay(plan, trial);
  const Facts before = infer(graph, probe);
  const Facts after = infer(trial.graph(), probe);

  std::unordered_map<std::string_view, ShapeChange> changes;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!before.shapes[v] || !after.shapes[v] || before.shapes[v] == after.shapes[v]) continue;
    changes.emplace(graph.values[v].name, ShapeChange{*before.shapes[v], *after.shapes[v]});
  }
  replay(plan, editor);
  editor.update_shapes([&](std::string_view name) -> std::optional<ShapeChange> {
    const auto it = changes.find(name);
    return it == changes.end() ? std::nullopt : std::optional(it->second);
  });
}

}  // namespace parsimony
