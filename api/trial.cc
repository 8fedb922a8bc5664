#include "parsimony/api/trial.h"

#include <utility>

#include "parsimony/speedup/make_plan.h"

namespace parsimony {

std::optional<Trial> cut(const Coupled& network, const AxisMasks& masks) {
  const auto& [graph, probe, facts, coupling] = network;
  PlanAttempt made = make_plan(graph, facts, coupling, masks);
  if (!made.refused.empty()) return std::nullopt;
  Trial small{std::move(made.plan), GraphEditor(graph, GraphEditor::Elements::kAll)};
  replay(small.plan, small.editor);
  const auto wanted = predict_shapes(facts, coupling, masks);
  if (!disagreements(small.graph(), probe, wanted).empty()) return std::nullopt;
  return small;
}

}  // namespace parsimony
