#include "parsimony/training/statistics/sites.h"

#include <algorithm>
#include <set>
#include <utility>

#include "parsimony/pruners/layers.h"

namespace parsimony::training {
namespace {

class SiteFinder {
 public:
  SiteFinder(const Graph& graph, const Coupling& coupling)
      : graph_(graph), coupling_(coupling), layers_(graph) {}

  std::vector<Site> of(GroupId group) const {
    std::vector<Site> sites;
    for (const NodeId layer : layers_with(group, Role::kIn)) {
      const auto& inputs = graph_.node(layer).inputs;
      for (size_t i = 0; i < inputs.size(); ++i)
        add(group, layer, static_cast<int>(i), inputs[i], sites);
    }
    if (!sites.empty()) return sites;
    for (const NodeId layer : layers_with(group, Role::kOut)) {
      for (const ValueId value : graph_.node(layer).outputs) add(group, kNone, 0, value, sites);
    }
    return sites;
  }

 private:
  std::set<NodeId> layers_with(GroupId group, Role role) const {
    std::set<NodeId> found;
    for (const Member& member : coupling_.groups[group].members) {
      const bool matrix = graph_.weight(graph_.value(member.value).weight).dims.size() >= 2;
      if (member.role != role || member.node == kNone || !matrix) continue;
      for (const NodeId layer : layers_.using_weight_of(member.node)) found.insert(layer);
    }
    return found;
  }

  void add(GroupId group, NodeId reader, int input, ValueId value, std::vector<Site>& sites) const {
    if (value == kNone || graph_.value(value).weight != kNone) return;
    const int dim = dim_of_group(coupling_, value, group);
    if (dim == kNone) return;
    sites.push_back(
        {group, reader, input, value, dim, channels_along(coupling_, value, dim, group)});
  }

  const Graph& graph_;
  const Coupling& coupling_;
  Layers layers_;
};

}  // namespace

int dim_of_group(const Coupling& coupling, ValueId value, GroupId group) {
  const auto& dim_classes = coupling.value_dim_classes[value];
  for (size_t dim = 0; dim < dim_classes.size(); ++dim) {
    if (dim_classes[dim] == kNone) continue;
    const auto channels = coupling.channels(dim_classes[dim]);
    const auto found = std::ranges::find(channels, group, &ChannelId::group);
    if (found != channels.end()) return static_cast<int>(dim);
  }
  return kNone;
}

std::vector<int64_t> channels_along(const Coupling& coupling, ValueId value, int dim,
                                    GroupId group) {
  const int64_t other = coupling.groups[group].size;
  std::vector<int64_t> channels;
  for (const ChannelId& c : coupling.channels(coupling.dim_class_of(value, dim))) {
    channels.push_back(c.group == group ? int64_t{c.channel} : other);
  }
  return channels;
}

std::vector<Site> sites_of(const Graph& graph, const Coupling& coupling) {
  const SiteFinder finder(graph, coupling);
  std::vector<Site> sites;
  for (const GroupId g : coupling.groups.ids()) {
    for (Site& site : finder.of(g)) sites.push_back(std::move(site));
  }
  return sites;
}

}  // namespace parsimony::training
