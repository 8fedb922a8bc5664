// Branches of sums, residual blocks among them: parts of a network that can be removed entirely;
// and the removal of a node, whose readers read one of its operands instead.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony {

/// y = x + f(…). Without it, y is x.
struct Branch {
  NodeId add = kNone;  ///< of two operands of equal shape, or of what is scattered into the first
  int kept_input = 0;  ///< which of them is x
  std::vector<NodeId> nodes;  ///< of f, ascending: those that only the addition needs
  bool operator==(const Branch&) const = default;
};

/// Does the node add two operands, or to the first one what it scatters?
bool adds_branches(const Node& node);

/// f(…) as the addition reads it: all of it, or what is scattered.
ValueId added_value(const Graph& graph, const Branch& branch);

/// The axis of the channels that a branch adds, in values of this rank: 1 where it convolves, the
/// last one elsewhere.
int channel_axis(const Graph& graph, const Branch& branch, size_t rank);

/// Finds the branch that a node is part of: that of the first sum behind it which alone needs it,
/// if the branch has a layer.
class BranchFinder {
 public:
  BranchFinder(const Graph& graph, const Facts& facts)
      : graph_(graph), facts_(facts), mark_(graph.nodes.size(), 0) {}

  /// The branch of the first sum that alone needs the node; empty if there is none among the next
  /// few hundred nodes, or f has no layer.
  std::optional<Branch> with(NodeId node);

 protected:
  std::optional<Branch> branch_at(NodeId add, int kept);
  bool has_layer(const Branch& branch) const;

  const Graph& graph_;
  const Facts& facts_;
  IdVector<NodeId, int> mark_;
  int stamp_ = 0;

 private:
  bool adds_activation(const Node& node, int kept) const;
  std::vector<NodeId> needed_only_by(NodeId add, int kept);
  bool inside(NodeId n, NodeId add, int kept) const;
};

/// y = x + f(x).
struct ResidualBlock : Branch {
  ValueId input = kNone;   ///< x
  ValueId output = kNone;  ///< y
  int channel_axis = 0;    ///< of x: 1 where f convolves, the last one elsewhere
  bool rectified = false;  ///< nothing but Relu nodes read y
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

/// A node whose readers read its operand `input` instead.
struct Bypass {
  NodeId node = kNone;
  int input = 0;
};

/// The nodes that are bypassed, and those that nothing reads any more without them.
IdVector<NodeId, bool> removed_by(const Graph& graph, std::span<const Bypass> bypasses);

/// Removes these. Values and weights keep their ids; a value whose weight has no reader left refers
/// to no weight.
/// @returns the new id of each node; kNone for those that were removed
/// @throws ModelError if a node has several outputs, lacks the operand, or if its output is one of
/// the graph's or of a body's
IdVector<NodeId, NodeId> bypass(Graph& graph, std::span<const Bypass> bypasses);

namespace errors {

/// For a front end whose models cannot lose nodes, such as live modules.
UnsupportedError cannot_bypass(std::string_view node);
/// `why` what the node is does not allow it.
ModelError not_bypassed(std::string_view node, std::string_view why);

}  // namespace errors

}  // namespace parsimony
