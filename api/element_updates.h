// Adds zeroed elements to a plan.
#pragma once

#include <vector>

#include "parsimony/masks/mask.h"
#include "parsimony/pruners/elements/elements.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// Adds zeros and new values to a plan that has its slices already; new values are sliced like
/// their tensors. Returns what became of each tensor.
std::vector<ElementOutcome> add_elements(const ElementPruning& pruning, Plan& plan);

}  // namespace parsimony
