// Removes a node from a Graph: readers of its result read one of its operands instead.
#pragma once

#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

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
