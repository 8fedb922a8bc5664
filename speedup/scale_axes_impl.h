// The axes whose length a factor may encode.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

struct ScaleAxis {
  ValueId value = kNone;
  int dim = 0;
  int64_t stride = 1;  ///< of the dimension's indices, those of (index / stride) % size
  int64_t size = 1;
  bool weighted = false;   ///< a weight is contracted along it
  bool embedding = false;  ///< not contracted: the row width of a lookup table
};

/// The axes that `node` itself contracts; for attention, the head size.
std::vector<ScaleAxis> summed_axes(const Graph& graph, const Facts& facts, const Node& node);

/// The axes contracted near a factor on `data`, whose product is `product`; contractions of two
/// activations first, then by distance.
std::vector<ScaleAxis> axes_near(const Graph& graph, const Facts& facts, ValueId data,
                                 ValueId product);

}  // namespace parsimony
