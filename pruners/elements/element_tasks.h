// Which weight matrices lose single elements, and by which request.
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

struct ElementTask {
  WeightId weight = kNone;
  int request = kNone;          ///< index into Settings::requests
  std::vector<Reader> readers;  ///< at least one, in the order of the layers
};

/// One entry per matrix whose layers are all pruned by criteria over elements, in the order of the
/// layers. A matrix that several layers use follows the one with the lowest ratio.
std::vector<ElementTask> element_tasks(const Graph& graph, const Settings& settings);

}  // namespace parsimony::elements
