#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/report/groups_impl.h"

namespace parsimony {
DimClassGroups::DimClassGroups(const Coupling& coupling) : coupling_(coupling) {
  groups_.resize(coupling.dim_classes().size());
  for (const DimClassId dim_class : coupling.dim_classes()) {
    auto& here = groups_[dim_class];
    for (const ChannelId& channel : coupling.channels(dim_class)) {
      // Channels of a group are contiguous, or alternate with those of a few others.
      if (channel.group == kNone || (!here.empty() && here.back() == channel.group)) continue;
      if (std::find(here.begin(), here.end(), channel.group) == here.end()) {
        here.push_back(channel.group);
      }
    }
  }
}

void DimClassGroups::add(ValueId value, std::vector<GroupId>& groups) const {
  if (value == kNone) return;
  for (const DimClassId dim_class : coupling_.value_dim_classes[value]) {
    if (dim_class == kNone) continue;
    const auto& here = groups_[dim_class];
    groups.insert(groups.end(), here.begin(), here.end());
  }
}

std::vector<GroupId> DimClassGroups::of_inputs(const Graph& graph, const Node& node) const {
  std::vector<GroupId> groups;
  for (const ValueId value : node.inputs) {
    if (value != kNone && graph.value(value).weight == kNone) add(value, groups);
  }
  sort_unique(groups);
  return groups;
}

std::vector<GroupId> DimClassGroups::of_outputs(const Node& node) const {
  std::vector<GroupId> groups;
  for (const ValueId value : node.outputs) add(value, groups);
  sort_unique(groups);
  return groups;
}

PerGroup<std::vector<NodeId>> DimClassGroups::ties() const {
  PerGroup<std::vector<NodeId>> ties(coupling_.groups.size());
  for (const DimClassId dim_class : groups_.ids()) {
    for (const GroupId group : groups_[dim_class]) {
      auto& nodes = ties[group];
      const auto& named = coupling_.dim_class_nodes[dim_class];
      nodes.insert(nodes.end(), named.begin(), named.end());
    }
  }
  for (auto& nodes : ties) sort_unique(nodes);
  return ties;
}

std::vector<std::string> ids_of(const Coupling& coupling, const std::vector<GroupId>& groups) {
  std::vector<std::string> ids;
  for (const GroupId group : groups) ids.push_back(coupling.groups[group].id);
  return ids;
}

}  // namespace parsimony
