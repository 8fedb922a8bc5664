// From masks over channels to the plan that removes them.
#pragma once

#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A plan, and the nodes that cannot take part in it: they must stay whole, and the coupling be
/// solved again.
struct PlanAttempt {
  Plan plan;
  std::vector<NodeId> refused;
};

/// Slices, copies and integers for the masks; the source's fingerprint and the reasons for what
/// stays whole are the caller's to add.
PlanAttempt make_plan(const Graph& graph, const Facts& facts, const Coupling& coupling,
                      const AxisMasks& masks);

/// Infers every shape of the graph that a plan made, for the sizes of `probe`, and compares it with
/// the prediction. Returns the node at which they disagree, or whose operands no longer fit: empty
/// if the plan is sound. The shapes are left in `inferred`, if that is asked for.
std::vector<NodeId> disagreements(const Graph& small, const Probe& probe,
                                  const ValueShapes& predicted, ValueShapes* inferred = nullptr);

/// Dimensions of weight matrices and kernels that stay whole, each with its reason.
std::vector<KeptWhole> kept_whole(const Graph& graph, const Coupling& coupling);

}  // namespace parsimony
