// Trial pruning on the graph alone.
#pragma once

#include <optional>

#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/masks/axis_mask.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A network with the shapes inferred with `probe`, and its groups.
struct Coupled {
  const Graph& graph;
  const Probe& probe;
  const Facts& facts;
  const Coupling& coupling;
};

/// A network that was pruned by masks, and how.
struct Trial {
  Plan plan;
  GraphEditor editor;

  const Graph& graph() const { return editor.graph(); }
};

/// Empty if the network cannot be pruned by these masks.
std::optional<Trial> cut(const Coupled& network, const AxisMasks& masks);

}  // namespace parsimony
