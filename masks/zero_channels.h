// Channels that are zero under element masks, found by propagation so that they can be removed.
#pragma once

#include <vector>

#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/element_mask.h"

namespace parsimony {

/// Marks for removal, in `masks`, the channels that contribute nothing once `zeros` are applied:
/// those whose `out` slices are all zero and that stay zero wherever they flow (a ReLU keeps zero,
/// a Sigmoid does not), and those whose `in` slices are all zero where nothing else sums them.
/// Weights that are zero in the file count like masked ones. Removing them changes no output.
/// Returns how many channels were found.
int remove_zero_channels(const Graph& graph, const Coupling& coupling,
                         const std::vector<ElementMask>& zeros, AxisMasks& masks);

}  // namespace parsimony
