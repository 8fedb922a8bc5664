// The parts of a network that are trained one after the other.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony::training {

struct TrainedBlock {
  std::vector<ValueId> values;    ///< layers' answers that are read behind the block
  std::set<std::string> weights;  ///< that these need, and no earlier block does
};

/// Cuts a network into blocks of about `layers` layers each, in the order of computation. What
/// follows the last layer belongs to none.
std::vector<TrainedBlock> blocks_of(const Graph& graph, size_t layers = 8);

}  // namespace parsimony::training
