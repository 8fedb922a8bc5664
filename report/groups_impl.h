// The groups of a value or a node. Private to report/.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"

namespace parsimony {

/// Groups by dim class, computed once: dim classes can be long, and a network has many.
class DimClassGroups {
 public:
  explicit DimClassGroups(const Coupling& coupling);

  /// Returns the ascending groups of a node's operands other than weights.
  std::vector<GroupId> of_inputs(const Graph& graph, const Node& node) const;
  std::vector<GroupId> of_outputs(const Node& node) const;

  /// Returns, per group, the nodes that name one of its dim classes, in graph order.
  PerGroup<std::vector<NodeId>> ties() const;

 private:
  void add(ValueId value, std::vector<GroupId>& groups) const;

  const Coupling& coupling_;
  IdVector<DimClassId, std::vector<GroupId>> groups_;
};

/// Returns "g0", "g3".
std::vector<std::string> ids_of(const Coupling& coupling, const std::vector<GroupId>& groups);

}  // namespace parsimony
