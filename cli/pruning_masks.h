// A pruning as masks over the weights of the original.
#pragma once

#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/masks/element_mask.h"

namespace parsimony::cli {

/// Masks of the removed channels and the zeroed elements; with exact constants, the plan's. The
/// weights of `graph` must still be valid.
std::vector<ElementMask> pruning_masks(const Graph& graph, const Pruning& pruning);

}  // namespace parsimony::cli
