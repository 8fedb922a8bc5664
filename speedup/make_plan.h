// From channel masks to the plan that removes the channels.
#pragma once

#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/masks/mask.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A plan, and the nodes that it cannot prune: their operands must be pinned and the coupling
/// solved again.
struct PlanAttempt {
  Plan plan;
  std::vector<NodeId> refused;
};

/// Slices, copies and integers for the masks. The caller adds the source's fingerprint and the
/// reasons why dimensions are not pruned.
PlanAttempt make_plan(const Graph& graph, const Facts& facts, const Coupling& coupling,
                      const AxisMasks& masks);

/// The sizes of the pruned graph's inputs: those of `probe`, cut as the plan says.
Probe small_probe(const Graph& graph, const Plan& plan, Probe probe);

/// Infers every shape of the pruned graph for the sizes of `probe` and compares it with the
/// prediction. Returns the node at which they disagree, or whose operands no longer fit; empty if
/// the plan is sound. The shapes are stored in `inferred`, if given.
std::vector<NodeId> disagreements(const Graph& small, const Probe& probe,
                                  const ValueShapes& predicted, ValueShapes* inferred = nullptr);

/// Dimensions of weight matrices and kernels that are not pruned, each with its reason.
std::vector<UnprunedDim> unpruned_dims(const Graph& graph, const Coupling& coupling);

}  // namespace parsimony
