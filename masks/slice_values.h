// Constant propagation over the slices of a network's values once elements of its weights are zero:
// does a slice still depend on the inputs?
#pragma once

#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/zero.h"
#include "parsimony/masks/element_mask.h"

namespace parsimony {

/// Per dimension and index of a value: what is known about the slice. No dimensions if nothing is
/// known.
using SliceValues = IdVector<ValueId, std::vector<std::vector<SliceValue>>>;

/// Propagates zeros and constants forward from the weights, with `masks` applied, by each
/// operator's rule. Sound but not complete: a slice that "varies" may be constant. A ReLU whose
/// inputs are never positive is not detected, since that depends on the data.
SliceValues propagate_slice_values(const Graph& graph, const Facts& facts,
                                   const std::vector<ElementMask>& masks);

}  // namespace parsimony
