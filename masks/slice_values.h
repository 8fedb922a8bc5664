// Constant propagation over the slices of a network's values once elements of its weights are zero:
// does a slice still depend on the inputs? Channels that are zero can then be removed.
#pragma once

#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/zero.h"
#include "parsimony/masks/mask.h"

namespace parsimony {

/// Per dimension and index of a value: what is known about the slice. No dimensions if nothing is
/// known.
using SliceValues = IdVector<ValueId, std::vector<std::vector<SliceValue>>>;

/// Propagates zeros and constants forward from the weights, with `masks` applied, by each
/// operator's rule. Sound but not complete: a slice that "varies" may be constant. A ReLU whose
/// inputs are never positive is not detected, since that depends on the data.
SliceValues propagate_slice_values(const Graph& graph, const Facts& facts,
                                   const std::vector<ElementMask>& masks);

/// Marks for removal, in `masks`, the channels that contribute nothing once `zeros` are applied:
/// those whose `out` slices are all zero and that stay zero wherever they flow (a ReLU keeps zero,
/// a Sigmoid does not), and those whose `in` slices are all zero where nothing else sums them.
/// Weights that are zero in the file count like masked ones. Removing them changes no output.
/// Returns how many channels were found.
int remove_zero_channels(const Graph& graph, const Coupling& coupling,
                         const std::vector<ElementMask>& zeros, AxisMasks& masks);

}  // namespace parsimony
