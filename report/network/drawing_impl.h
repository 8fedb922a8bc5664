// The network as boxes and lines, for every picture of it. Private to report/.
#pragma once

#include <vector>

#include "parsimony/graph/operators/node_view.h"
#include "parsimony/report/groups_impl.h"

namespace parsimony {

/// A node, or an input or output of the network.
struct DrawnBox {
  NodeId node = kNone;
  ValueId value = kNone;        ///< the node's first output, or the input or output itself
  std::vector<GroupId> groups;  ///< whose channels the node produces
};

/// A line between boxes, by their positions.
struct DrawnLine {
  int from = 0;
  int to = 0;
  bool inside = false;  ///< from a node's body to the node
};

/// Inputs first, then nodes in graph order, then outputs: lines lead onwards. Nodes of shape
/// arithmetic are omitted.
struct Drawing {
  std::vector<DrawnBox> boxes;
  std::vector<DrawnLine> lines;  ///< one per operand
};

Drawing drawing_of(const Graph& graph, const Facts& facts, const DimClassGroups& groups);

}  // namespace parsimony
