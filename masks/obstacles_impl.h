// Why dimensions of weights stay whole. Private to masks/.
#pragma once

#include <vector>

#include "parsimony/masks/classes_impl.h"

namespace parsimony {

/// A dimension of a weight, and the first node that reads it.
struct WeightRead {
  ValueId value = kNone;
  NodeId node = kNone;
  int dim = 0;
};

std::vector<Obstacle> find_obstacles(const Graph& graph, const Lines& lines, Classes& classes,
                                     const std::vector<WeightRead>& reads);

}  // namespace parsimony
