// Which weight matrices lose single elements, and at whose request.
#pragma once

#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/settings.h"

namespace parsimony::elements {

/// A layer and the weight as it reads it.
struct Reader {
  NodeId layer = kNone;
  ValueId value = kNone;
};

struct Order {
  WeightId weight = kNone;
  int request = kNone;          ///< index into Settings::requests
  std::vector<Reader> readers;  ///< at least one, in the order of the layers
};

/// One order per matrix whose layers are all pruned by criteria over elements, in the order of the
/// layers. A matrix that several layers use follows the one of least ratio.
std::vector<Order> orders_of(const Graph& graph, const Settings& settings);

}  // namespace parsimony::elements
