// Which groups meet a value or a node. Private to report/.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"

namespace parsimony {

/// Groups by line, found once: a line is as long as its dimension, and a network has many.
class LineGroups {
 public:
  explicit LineGroups(const Coupling& coupling);

  /// Ascending groups with a channel on some dimension of the value.
  std::vector<int> of_value(ValueId value) const;
  /// Ascending groups of the data that a node reads: of its operands that are no weights.
  std::vector<int> of_inputs(const Graph& graph, const Node& node) const;
  std::vector<int> of_outputs(const Node& node) const;

  /// Per group, the nodes that name one of its lines, in graph order.
  std::vector<std::vector<NodeId>> ties() const;

 private:
  void add(ValueId value, std::vector<int>& groups) const;

  const Coupling& coupling_;
  IdVector<LineId, std::vector<int>> groups_;
};

/// "g0", "g3"
std::vector<std::string> ids_of(const Coupling& coupling, const std::vector<int>& groups);

}  // namespace parsimony
