// Takes a node out of a Graph: what read its result reads one of its operands.
#pragma once

#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// What reads the node's output reads its operand `input` instead. The node goes, and so does every
/// node that nothing reads then. Values and weights keep their numbers; a value whose weight lost
/// its last reader shows none.
/// @returns the new number of each node; kNone for those that are gone
/// @throws ModelError if the node has several outputs, lacks the operand, or if its output is one
/// of the graph's or of a body's
IdVector<NodeId, NodeId> bypass(Graph& graph, NodeId node, int input);

namespace errors {

/// A front end whose models cannot lose nodes, as live modules cannot.
UnsupportedError cannot_bypass(std::string_view node);
/// `why` what the node is does not allow it.
ModelError not_bypassed(std::string_view node, std::string_view why);

}  // namespace errors

}  // namespace parsimony
