// The axes from whose length a factor may have been made.
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
  bool weighted = false;   ///< a weight is summed over with it
  bool embedding = false;  ///< not summed over: the width of a table's rows
};

/// Those that `node` itself sums over; of attention, the size of a head.
std::vector<ScaleAxis> summed_axes(const Graph& graph, const Facts& facts, const Node& node);

/// Those summed over near a factor on `data`, whose product is `product`; sums of two activations
/// first, else in order of distance.
std::vector<ScaleAxis> axes_near(const Graph& graph, const Facts& facts, ValueId data,
                                 ValueId product);

}  // namespace parsimony
