// Networks that are cut to be looked at, not to be kept.
#pragma once

#include <optional>

#include "parsimony/graph/graph_editor.h"
#include "parsimony/graph/infer.h"
#include "parsimony/masks/axis_mask.h"

namespace parsimony {

/// A network with the shapes that were inferred with `probe`, and its groups.
struct Coupled {
  const Graph& graph;
  const Probe& probe;
  const Facts& facts;
  const Coupling& coupling;
};

/// The network under the masks; nothing if it cannot be cut so.
std::optional<GraphEditor> cut(const Coupled& network, const AxisMasks& masks);

}  // namespace parsimony
