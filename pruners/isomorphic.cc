#include "parsimony/pruners/isomorphic.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "parsimony/base/ranges.h"

namespace parsimony {

namespace {

constexpr size_t kMostRounds = 16;

uint64_t mixed(uint64_t seed, uint64_t value) {
  uint64_t x = (seed ^ value) + 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

uint64_t mixed(uint64_t seed, std::string_view text) {
  for (const char c : text) seed = mixed(seed, static_cast<unsigned char>(c));
  return seed;
}

/// The same for any order of the values.
uint64_t of_bag(uint64_t seed, std::vector<uint64_t> values) {
  std::ranges::sort(values);
  for (const uint64_t value : values) seed = mixed(seed, value);
  return seed;
}

using Labels = std::map<NodeId, uint64_t>;

/// Operators, and the weights of the group that they read.
Labels first_labels(const Graph& graph, const Group& group, const std::vector<NodeId>& nodes) {
  std::map<NodeId, std::vector<uint64_t>> read;
  for (const Member& member : group.members) {
    if (member.node == kNone) continue;
    const Weight& weight = graph.weight(graph.value(member.value).weight);
    const uint64_t label =
        mixed(static_cast<uint64_t>(member.role), static_cast<uint64_t>(member.axis));
    read[member.node].push_back(mixed(label, weight.dims.size()));
  }
  Labels labels;
  for (const NodeId node : nodes) {
    labels[node] = of_bag(mixed(1, graph.node(node).op), read[node]);
  }
  return labels;
}

/// Labels of the neighbours, those that feed a node apart from those that it feeds.
Labels refined(const Graph& graph, const Labels& labels) {
  std::map<NodeId, std::vector<uint64_t>> around;
  for (const auto& [node, label] : labels) {
    for (const ValueId input : graph.node(node).inputs) {
      if (input == kNone) continue;
      const NodeId producer = graph.value(input).producer;
      const auto before = producer == kNone ? labels.end() : labels.find(producer);
      if (before == labels.end()) continue;
      around[node].push_back(mixed(2, before->second));
      around[producer].push_back(mixed(3, label));
    }
  }
  Labels result;
  for (const auto& [node, label] : labels) result[node] = of_bag(label, around[node]);
  return result;
}

/// Nodes along which each group runs.
PerGroup<std::vector<NodeId>> nodes_of_groups(const Coupling& coupling) {
  PerGroup<std::vector<NodeId>> nodes(coupling.groups.size());
  for (const DimClassId dim_class : coupling.dim_classes()) {
    GroupId last = kNone;  // channels of a group mostly lie side by side
    for (const ChannelId& channel : coupling.channels(dim_class)) {
      if (channel.group == kNone || channel.group == last) continue;
      last = channel.group;
      if (!coupling.dim_class_nodes.has(dim_class)) continue;
      const auto& named = coupling.dim_class_nodes[dim_class];
      auto& here = nodes[last];
      here.insert(here.end(), named.begin(), named.end());
    }
  }
  for (const GroupId g : nodes.ids()) {
    for (const Member& member : coupling.groups[g].members) {
      if (member.node != kNone) nodes[g].push_back(member.node);
    }
    sort_unique(nodes[g]);
  }
  return nodes;
}

}  // namespace

PerGroup<uint64_t> subgraph_shapes(const Graph& graph, const Coupling& coupling) {
  const PerGroup<std::vector<NodeId>> nodes = nodes_of_groups(coupling);
  PerGroup<uint64_t> shapes;
  for (const GroupId g : coupling.groups.ids()) {
    Labels labels = first_labels(graph, coupling.groups[g], nodes[g]);
    const size_t rounds = std::min(nodes[g].size(), kMostRounds);
    for (size_t round = 0; round < rounds; ++round) labels = refined(graph, labels);
    std::vector<uint64_t> values;
    for (const auto& [node, label] : labels) values.push_back(label);
    const uint64_t seed = mixed(4, values.size());
    shapes.push_back(of_bag(seed, std::move(values)));
  }
  return shapes;
}

}  // namespace parsimony
