// What loses the same channels: a group, or the groups that a configuration ties together.
#pragma once

#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/follow.h"

namespace parsimony {

/// Groups of one size; channel c of each goes where channel c of the others goes.
struct Unit {
  std::vector<int> groups;  ///< ascending
  std::vector<int> scored;  ///< those whose scores are added up: aligned ones only follow
  int request = kNone;      ///< the most careful of the scored groups' requests
};

/// Ties the groups of layers with one dependency_group, and those of layers that are aligned with
/// another. Groups that stay whole are in no unit; nor are those that are tied to one of them,
/// which `followed` then says.
/// @throws ConfigError where the layers' output channels are not alike
std::vector<Unit> tie(const Graph& graph, const Layers& layers, const Coupling& coupling,
                      const Settings& settings, Followed& followed);

}  // namespace parsimony
