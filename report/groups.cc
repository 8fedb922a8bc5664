#include <algorithm>

#include "parsimony/report/groups_impl.h"

namespace parsimony {
namespace {

template <typename Item>
void sort_unique(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

LineGroups::LineGroups(const Coupling& coupling) : coupling_(coupling) {
  groups_.resize(coupling.lines().size());
  for (const LineId line : coupling.lines()) {
    auto& here = groups_[line];
    for (const ChannelId& channel : coupling.channels(line)) {
      // Channels of one group lie together, or alternate with those of a few others.
      if (channel.group == kNone || (!here.empty() && here.back() == channel.group)) continue;
      if (std::find(here.begin(), here.end(), channel.group) == here.end()) {
        here.push_back(channel.group);
      }
    }
  }
}

void LineGroups::add(ValueId value, std::vector<int>& groups) const {
  if (value == kNone) return;
  for (const LineId line : coupling_.value_lines[value]) {
    if (line == kNone) continue;
    const auto& here = groups_[line];
    groups.insert(groups.end(), here.begin(), here.end());
  }
}

std::vector<int> LineGroups::of_value(ValueId value) const {
  std::vector<int> groups;
  add(value, groups);
  sort_unique(groups);
  return groups;
}

std::vector<int> LineGroups::of_inputs(const Graph& graph, const Node& node) const {
  std::vector<int> groups;
  for (const ValueId value : node.inputs) {
    if (value != kNone && graph.value(value).weight == kNone) add(value, groups);
  }
  sort_unique(groups);
  return groups;
}

std::vector<int> LineGroups::of_outputs(const Node& node) const {
  std::vector<int> groups;
  for (const ValueId value : node.outputs) add(value, groups);
  sort_unique(groups);
  return groups;
}

std::vector<std::vector<NodeId>> LineGroups::ties() const {
  std::vector<std::vector<NodeId>> ties(coupling_.groups.size());
  for (const LineId line : groups_.ids()) {
    for (const int group : groups_[line]) {
      auto& nodes = ties[group];
      const auto& named = coupling_.line_nodes[line];
      nodes.insert(nodes.end(), named.begin(), named.end());
    }
  }
  for (auto& nodes : ties) sort_unique(nodes);
  return ties;
}

std::vector<std::string> ids_of(const Coupling& coupling, const std::vector<int>& groups) {
  std::vector<std::string> ids;
  for (const int group : groups) ids.push_back(coupling.groups[group].id);
  return ids;
}

}  // namespace parsimony
