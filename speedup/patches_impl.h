// The integers that smaller shapes ask for. Private to speedup/.
#pragma once

#include <vector>

#include "parsimony/graph/rule.h"
#include "parsimony/masks/axis_mask.h"

namespace parsimony {

std::vector<Patch> find_patches(const Graph& graph, const Facts& facts, const Coupling& coupling,
                                const AxisMasks& masks);

}  // namespace parsimony
