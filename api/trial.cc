#include "parsimony/api/trial.h"

#include <utility>

#include "parsimony/speedup/make_plan.h"

namespace parsimony {

std::optional<GraphEditor> cut(const Coupled& network, const AxisMasks& masks) {
  const auto& [graph, probe, facts, coupling] = network;
  const PlanAttempt made = make_plan(graph, facts, coupling, masks);
  if (!made.refused.empty()) return std::nullopt;
  std::optional<GraphEditor> small(std::in_place, graph, GraphEditor::Elements::kAll);
  replay(made.plan, *small);
  const auto wanted = predict_shapes(facts, coupling, masks);
  if (!disagreements(small->graph(), probe, wanted).empty()) return std::nullopt;
  return small;
}

}  // namespace parsimony
