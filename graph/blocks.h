// Residual blocks: parts of a network that can be removed entirely; and the removal of a node,
// whose readers read one of its operands instead.
#pragma once

#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony {

/// y = x + f(x). Without it, y is x.
struct ResidualBlock {
  NodeId add = kNone;         ///< the addition, of two operands of equal shape
  int kept_input = 0;         ///< which of them is x
  ValueId input = kNone;      ///< x
  ValueId output = kNone;     ///< y
  std::vector<NodeId> nodes;  ///< of f, ascending: those that only this block needs
  int channel_axis = 0;       ///< of x: 1 where f convolves, the last one elsewhere
  bool rectified = false;     ///< nothing but Relu nodes read y
};

/// The innermost blocks, in topological order. Of an addition of two activations of equal, known
/// shape, x is the operand that the other one is computed from:
///
///     x -> BatchNorm -> Conv -> … -> Add(x, ·) -> y          LayerNorm -> attention -> Add, …
///
/// f contains a layer (a weight of two dimensions or more) and no subgraph, its results reach only
/// the addition, and besides x it reads only weights and values that do not depend on x: masks,
/// shape arithmetic, an encoder's result. There is no block where y is an output of the network or
/// is read inside a subgraph, nor where another block lies inside.
std::vector<ResidualBlock> residual_blocks(const Graph& graph, const Facts& facts);

/// Readers of the node's output read its operand `input` instead. The node is removed, and so is
/// every node that is then unused. Values and weights keep their ids; a value whose weight has no
/// reader left refers to no weight.
/// @returns the new id of each node; kNone for those that were removed
/// @throws ModelError if the node has several outputs, lacks the operand, or if its output is one
/// of the graph's or of a body's
IdVector<NodeId, NodeId> bypass(Graph& graph, NodeId node, int input);

namespace errors {

/// For a front end whose models cannot lose nodes, such as live modules.
UnsupportedError cannot_bypass(std::string_view node);
/// `why` what the node is does not allow it.
ModelError not_bypassed(std::string_view node, std::string_view why);

}  // namespace errors

}  // namespace parsimony
