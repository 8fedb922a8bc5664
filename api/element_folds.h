// Zeroed elements as a plan says them.
#pragma once

#include <vector>

#include "parsimony/masks/element_outcome.h"
#include "parsimony/pruners/elements/elements.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// Adds to a plan that has its slices: zeros and new values, the latter cut as the plan cuts their
/// tensors. Returns what became of each tensor.
std::vector<ElementOutcome> add_elements(const ElementPruning& pruning, Plan& plan);

}  // namespace parsimony
