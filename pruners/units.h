// A unit loses the same channels: a group, or the groups that a configuration ties together.
#pragma once

#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/follow.h"

namespace parsimony {

/// Groups of one size; channel c is removed from all of them or from none.
struct Unit {
  std::vector<GroupId> groups;  ///< ascending
  std::vector<GroupId> scored;  ///< the groups whose scores are summed; aligned ones only follow
  int request = kNone;          ///< the most conservative of the scored groups' requests
};

/// Ties the groups of layers with one dependency_group, and those of layers that are aligned with
/// another. Groups that are not pruned are in no unit; nor are those tied to one of them, which is
/// recorded in `followed`.
/// @throws ConfigError if the layers' output channels differ
std::vector<Unit> tie(const Graph& graph, const Layers& layers, const Coupling& coupling,
                      const Settings& settings, Followed& followed);

}  // namespace parsimony
