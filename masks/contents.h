// What the slices of a network's values hold once elements of its weights are zero: does anything
// of the inputs still arrive there?
#pragma once

#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/zero.h"
#include "parsimony/masks/element_mask.h"

namespace parsimony {

/// Per dimension and index of a value: what is known of the slice. No dimensions where nothing is.
using Contents = IdVector<ValueId, std::vector<std::vector<Content>>>;

/// Follows zeros and constants from the weights on, with `masks` applied, through what the rules
/// say of each operator. Sound, not complete: a slice that "varies" may be constant. A ReLU whose
/// inputs are never positive is not found, since only the inputs that were tried would show it.
Contents trace_contents(const Graph& graph, const Facts& facts,
                        const std::vector<ElementMask>& masks);

}  // namespace parsimony
