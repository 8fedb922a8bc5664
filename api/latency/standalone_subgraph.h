// One subgraph as a network of its own, to be timed.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony {

/// A graph that owns its constants; the weights are views of the network's. Moving it does not
/// invalidate the views.
struct StandaloneSubgraph {
  Graph graph;
  std::deque<std::vector<std::byte>> memory;
};

/// Extracts `nodes` of `network`. Operands from other nodes become inputs, with the shape that
/// `facts` knows; values computed from shapes become constants; values computed from weights alone
/// are computed in the subgraph. The outputs are the results that no node of the subgraph reads,
/// and those that others read.
/// @throws UnsupportedError if the shape of an operand is not known
StandaloneSubgraph standalone_subgraph(const Graph& network, const Facts& facts,
                                       std::span<const NodeId> nodes);

}  // namespace parsimony
