// The integers that smaller shapes require. Private to speedup/.
#pragma once

#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/axis_mask.h"

namespace parsimony {

/// Nodes whose integers cannot be adapted are added to `refused`.
std::vector<Patch> find_patches(const Graph& graph, const Facts& facts, const Coupling& coupling,
                                const AxisMasks& masks, std::vector<NodeId>& refused);

}  // namespace parsimony
