// Element masks: they zero weights in place; channels that become zero can then be removed.
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

  bool operator==(const ElementMask&) const = default;
};

/// Zeroes the `count` elements of smallest magnitude; ties fall to the lower index.
/// @throws ModelError for a NaN, UnsupportedError for a type that has no magnitude
ElementMask mask_smallest(const Weight& weight, int64_t count);

/// Converts axis masks to masks over the weights they slice, one per tensor with a removed index.
/// Divisors (Role::kWith) are skipped: they may not become zero. A vector that several layers share
/// keeps what any of them keeps.
std::vector<ElementMask> to_element_masks(const Graph& graph, const Coupling& coupling,
                                          const AxisMasks& masks);

}  // namespace parsimony
