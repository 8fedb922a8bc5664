// Units that share a budget: the request that a group follows, as its layers may have different
// ones, and the groups that lose the same channels.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// Request per group; kNone for a group that is not pruned.
struct Followed {
  PerGroup<int> request;
  std::vector<Conflict> conflicts;
};

/// A group follows its most conservative layer: it is not pruned if one of them is excluded or not
/// named, and takes the smallest of their ratios otherwise (of equal ones the earlier request); a
/// request aligned with another layer takes precedence over a ratio, a ratio over a threshold or an
/// amount of the network. Its layers are those whose matrices produce its channels. Requests that
/// score single elements do not count. Settings::mixing says which groups that mix are pruned.
///
/// A request for in_channels concerns the groups that its layers read. The layers that produce such
/// a group need not be named, but if one of them is excluded the group is not pruned. The
/// `in_channel` of an embedding is what it produces, as in NNI.
Followed follow(const Graph& graph, const Layers& layers, const Coupling& coupling,
                const Settings& settings);

/// Layers whose matrices produce the channels of a group (Role::kOut), or read them (Role::kIn).
std::vector<NodeId> layers_of(const Graph& graph, const Layers& layers, const Group& group,
                              Role role);

/// Does in_channels of this layer refer to what it reads? Embeddings read indices.
bool reads_channels(const Graph& graph, NodeId layer);

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
