// Finds the group at fault when a small model does not compute what it should.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "parsimony/api/prune.h"

namespace parsimony {

struct GroupAtFault {
  std::string id;    ///< "g3"
  std::string text;  ///< with its layers: "group g3 (conv1, conv2)"
};

/// Bisects over the groups: prunes only the first n of them and checks whether the small network
/// still differs. `graph` is the original, as `plan_pruning` left it.
/// @returns the first group that makes a difference; empty if nothing differs on the graph alone,
/// so that the fault is in the edit of the file or module, or if the graph cannot be run
std::optional<GroupAtFault> group_at_fault(const Graph& graph, const Pruning& pruning,
                                           const std::function<bool(const Plan&)>& differs);

}  // namespace parsimony
