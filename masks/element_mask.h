// Masks over single elements: they zero weights in place; channels that die of it can be removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/axis_mask.h"

namespace parsimony {

/// One mask over a weight tensor; row-major, 1 keeps.
struct ElementMask {
  std::string tensor;
  Shape dims;
  std::vector<uint8_t> keep;
};

/// Zeroes the `count` elements of smallest magnitude; ties fall to the lower index.
ElementMask mask_smallest(const Weight& weight, int64_t count);

/// The axis masks as masks over the weights they slice, one per tensor with a removed index.
std::vector<ElementMask> to_element_masks(const Graph& graph, const Coupling& coupling,
                                          const AxisMasks& masks);

}  // namespace parsimony
