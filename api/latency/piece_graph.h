// One piece of a network as a network of its own, to be timed.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony {

/// A graph with the memory of its constants; the weights are views of the network's. Moving it
/// leaves the views valid.
struct PieceGraph {
  Graph graph;
  std::deque<std::vector<std::byte>> memory;
};

/// `nodes` of `network` alone. What they read of others becomes an input, with the shape that
/// `facts` knows; what is computed from shapes alone a constant; what is computed of weights alone
/// is computed in the piece. Results that nobody in the piece reads are the outputs, and those that
/// others read.
/// @throws UnsupportedError if the shape of an operand is not known
PieceGraph piece_graph(const Graph& network, const Facts& facts, std::span<const NodeId> nodes);

}  // namespace parsimony
