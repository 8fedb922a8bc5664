// Why dimensions of weights cannot be pruned. Private to masks/.
#pragma once

#include <vector>

#include "parsimony/masks/index_classes_impl.h"

namespace parsimony {

/// A dimension of a weight, and the first node that reads it.
struct WeightRead {
  ValueId value = kNone;
  NodeId node = kNone;
  int dim = 0;
};

std::vector<Obstacle> find_obstacles(const Graph& graph, const DimClasses& dim_classes,
                                     IndexClasses& classes, const std::vector<WeightRead>& reads);

}  // namespace parsimony
