// What nodes read.
#pragma once

#include "parsimony/graph/graph.h"

namespace parsimony {

/// Calls `visit` with what a node reads: its operands, and the results of its bodies.
template <typename Visit>
void for_each_read(const Graph& graph, const Node& node, const Visit& visit) {
  for (const ValueId v : node.inputs) {
    if (v != kNone) visit(v);
  }
  for (const BodyId b : node.bodies) {
    for (const ValueId v : graph.bodies[b].outputs) visit(v);
  }
}

}  // namespace parsimony
