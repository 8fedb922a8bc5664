// Finds the group at fault when a small model does not compute what it should.
#pragma once

#include <functional>
#include <string>

#include "parsimony/api/prune.h"

namespace parsimony {

/// Bisects over the groups: prunes only the first n of them and checks whether the small network
/// still differs. `graph` is the original, as `plan_pruning` left it.
/// @returns the first group that makes a difference, with its layers; empty if nothing differs on
/// the graph alone, so that the fault is in the edit of the file or module, or if the graph cannot
/// be run
std::string group_at_fault(const Graph& graph, const Pruning& pruning,
                           const std::function<bool(const Plan&)>& differs);

}  // namespace parsimony
