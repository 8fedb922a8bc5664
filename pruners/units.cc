#include "parsimony/pruners/units.h"

#include <algorithm>
#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {

namespace {

/// The channels of a group as one of its layers has them: rows of its matrix, by channel.
struct Rows {
  GroupId group = kNone;
  std::vector<int64_t> first;  ///< of each channel
};

/// What a layer produces, in the order of its rows.
std::vector<Rows> rows_of(const Layers& layers, const Coupling& coupling, const Graph& graph,
                          NodeId layer) {
  std::vector<Rows> result;
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    for (const Member& member : group.members) {
      const Weight& weight = graph.weight(graph.value(member.value).weight);
      if (member.role != Role::kOut || weight.dims.size() < 2 || member.node == kNone) continue;
      const std::vector<NodeId> users = layers.using_weight_of(member.node);
      if (!contains(users, layer)) continue;
      Rows rows{g, {}};
      for (int c = 0; c < group.size; ++c) {
        rows.first.push_back(member.of(c).empty() ? -1 : member.of(c).front());
      }
      result.push_back(std::move(rows));
      break;
    }
  }
  std::ranges::sort(result, {}, &Rows::first);
  return result;
}

class Tier {
 public:
  Tier(const Graph& graph, const Layers& layers, const Coupling& coupling, const Settings& settings,
       Followed& followed)
      : graph_(graph),
        layers_(layers),
        coupling_(coupling),
        settings_(settings),
        followed_(followed) {
    for (size_t i = 0; i < coupling.groups.size(); ++i) sets_.add();
  }

  std::vector<Unit> run() {
    unite_dependent();
    unite_aligned();
    std::map<int, Unit> units;  // by root
    for (const GroupId g : coupling_.groups.ids()) {
      units[sets_.find(g.number())].groups.push_back(g);
    }
    std::vector<Unit> result;
    for (auto& [root, unit] : units) {
      if (complete(unit)) result.push_back(std::move(unit));
    }
    std::ranges::sort(result, {}, &Unit::groups);
    return result;
  }

 private:
  const Request* request_of(NodeId node) const {
    const LayerSetting& setting = settings_.layers[node];
    if (setting.state != LayerSetting::State::kPruned) return nullptr;
    return &settings_.requests[setting.request];
  }

  void unite(NodeId first, NodeId second) {
    const std::vector<Rows> a = rows_of(layers_, coupling_, graph_, first);
    const std::vector<Rows> b = rows_of(layers_, coupling_, graph_, second);
    const bool alike = std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                  [](const Rows& x, const Rows& y) { return x.first == y.first; });
    if (!alike) {
      throw ConfigError(in_quotes(label_of(graph_, graph_.node(first))), " and ",
                        in_quotes(label_of(graph_, graph_.node(second))),
                        " are to lose the same channels, but what can be removed of their output "
                        "channels is not alike; give them different groups, or align neither");
    }
    for (size_t i = 0; i < a.size(); ++i) sets_.unite(a[i].group.number(), b[i].group.number());
  }

  void unite_dependent() {
    std::map<std::string, NodeId> first;
    for (const NodeId node : graph_.nodes.ids()) {
      const Request* request = layers_.contains(node) ? request_of(node) : nullptr;
      if (request == nullptr || request->dependency_group.empty()) continue;
      const auto [place, fresh] = first.try_emplace(request->dependency_group, node);
      if (!fresh) unite(place->second, node);
    }
  }

  void unite_aligned() {
    for (const NodeId node : graph_.nodes.ids()) {
      const Request* request = layers_.contains(node) ? request_of(node) : nullptr;
      if (request == nullptr || request->aligned_with == kNone) continue;
      if (request->aligned_with != node) unite(request->aligned_with, node);
    }
  }

  const Request& followed_by(GroupId group) const {
    return settings_.requests[followed_.request[group]];
  }

  /// False if the unit is not pruned.
  bool complete(Unit& unit) {
    const auto whole =
        std::ranges::find_if(unit.groups, [&](GroupId g) { return followed_.request[g] == kNone; });
    if (whole != unit.groups.end()) return exclude(unit, *whole);
    for (const GroupId g : unit.groups) {
      if (followed_by(g).aligned_with == kNone) unit.scored.push_back(g);
    }
    if (unit.scored.empty()) return exclude(unit, kNone);
    const auto careful = [&](GroupId a, GroupId b) {
      return followed_by(a).ratio < followed_by(b).ratio;
    };
    const GroupId least = *std::ranges::min_element(unit.scored, careful);
    unit.request = followed_.request[least];
    for (const GroupId g : unit.groups) followed_.request[g] = unit.request;
    return true;
  }

  bool exclude(const Unit& unit, GroupId because) {
    for (const GroupId g : unit.groups) {
      int& request = followed_.request[g];
      if (request == kNone) continue;
      request = kNone;
      const std::string why = because == kNone
                                  ? "it follows layers that follow it"
                                  : "it is to lose the same channels as group " +
                                        coupling_.groups[because].id + ", which is not pruned";
      followed_.conflicts.push_back({g, why + ": the group is not pruned"});
    }
    return false;
  }

  const Graph& graph_;
  const Layers& layers_;
  const Coupling& coupling_;
  const Settings& settings_;
  Followed& followed_;
  UnionFind sets_;
};

}  // namespace

std::vector<Unit> tie(const Graph& graph, const Layers& layers, const Coupling& coupling,
                      const Settings& settings, Followed& followed) {
  return Tier(graph, layers, coupling, settings, followed).run();
}

}  // namespace parsimony
