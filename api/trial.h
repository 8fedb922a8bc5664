// Trial pruning on the graph alone.
#pragma once

#include <optional>

#include "parsimony/graph/graph_editor.h"
#include "parsimony/graph/infer.h"
#include "parsimony/masks/axis_mask.h"

namespace parsimony {

/// A network with the shapes inferred with `probe`, and its groups.
struct Coupled {
  const Graph& graph;
  const Probe& probe;
  const Facts& facts;
  const Coupling& coupling;
};

/// The network pruned by the masks; empty if it cannot be pruned that way.
std::optional<GraphEditor> cut(const Coupled& network, const AxisMasks& masks);

}  // namespace parsimony
