#include "parsimony/pruners/units.h"

#include <algorithm>
#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/masks/union_find.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {

namespace {

std::string quoted(const Graph& graph, NodeId node) {
  return '"' + label_of(graph, graph.node(node)) + '"';
}

/// Decides for the groups of one network.
class TiedWidths {
 public:
  TiedWidths(const Graph& graph, const Layers& layers, const Settings& settings)
      : graph_(graph), layers_(layers), settings_(settings) {
    for (const Request& request : settings.requests) {
      by_channel_.push_back(find_criterion(request.criterion).score != nullptr);
      any_in_ = any_in_ || request.in_channels;
    }
  }

  /// The request that the group follows, kNone if it is not pruned; `reason` is set if some layer
  /// has another one.
  int decide(const Group& group, std::string& reason) const {
    if (!may_prune(group, settings_.mixing)) return kNone;
    if (has_experts(group)) return decide_experts(group, reason);
    const int decided = decide_channels(group, reason);
    return decided != kNone && removes_experts(settings_.requests[decided]) ? kNone : decided;
  }

 private:
  /// Does the request leave all channels but experts?
  bool removes_experts(const Request& request) const {
    return request.granularity.value_or(settings_.granularity) == Granularity::kExpert;
  }

  /// The request of the layers that compute experts or their scores; those that are not named, or
  /// that lose other channels, do not object.
  int decide_experts(const Group& group, std::string& reason) const {
    std::vector<NodeId> layers = layers_of(graph_, layers_, group, Role::kOut);
    const std::vector<NodeId> others = layers_of(graph_, layers_, group, Role::kIn);
    layers.insert(layers.end(), others.begin(), others.end());
    for (const ChannelBranch& own : group.branches) {
      std::ranges::copy_if(own.branch.nodes, std::back_inserter(layers),
                           [&](NodeId n) { return layers_.contains(n); });
    }
    int request = kNone;
    for (const NodeId node : layers) {
      const LayerSetting& setting = setting_of(node);
      if (setting.state == LayerSetting::State::kExcluded) {
        reason = refusal(node) + ": the experts stay";
        return kNone;
      }
      const int own = request_of(node);
      if (own == kNone || !removes_experts(settings_.requests[own])) continue;
      const bool is_less =
          request == kNone || settings_.requests[own].ratio < settings_.requests[request].ratio;
      if (is_less) request = own;
    }
    return request;
  }

  int decide_channels(const Group& group, std::string& reason) const {
    std::vector<NodeId> producers = layers_of(graph_, layers_, group, Role::kOut);
    // Channels that no layer makes, of an input, of padding or of learned queries, are decided by
    // the layers that read them.
    if (producers.empty()) producers = layers_of(graph_, layers_, group, Role::kIn);
    if (producers.empty()) return elsewhere();
    std::vector<NodeId> askers;
    std::ranges::copy_if(producers, std::back_inserter(askers),
                         [&](NodeId node) { return asks(node, false); });
    const bool by_consumers = add_consumers(group, askers);
    if (askers.empty()) return kNone;
    const auto refuser = std::ranges::find_if(
        producers, [&](NodeId node) { return by_consumers ? refuses(node) : !asks(node, false); });
    if (refuser != producers.end()) {
      reason = refusal(*refuser) + ", and " + quoted(graph_, askers.front()) +
               " is coupled with it: the group is not pruned";
      return kNone;
    }
    const auto more_careful = [&](NodeId a, NodeId b) {
      return std::pair(care(a), request_of(a)) < std::pair(care(b), request_of(b));
    };
    const auto [least, most] = std::ranges::minmax_element(askers, more_careful);
    if (request_of(*least) != request_of(*most)) {
      reason = asked(*most) + ", " + asked(*least) + ": the group follows the latter";
    }
    return request_of(*least);
  }

  const LayerSetting& setting_of(NodeId node) const { return settings_.layers[node]; }
  int request_of(NodeId node) const {
    const LayerSetting& setting = setting_of(node);
    if (setting.state != LayerSetting::State::kPruned) return kNone;
    return by_channel_[setting.request] ? setting.request : kNone;
  }
  const Request& request(NodeId node) const { return settings_.requests[request_of(node)]; }
  int elsewhere() const {
    const int request = settings_.elsewhere;
    return request != kNone && by_channel_[request] ? request : kNone;
  }

  /// Does the layer ask for channels that it makes, or (`in`) for those that it reads?
  bool asks(NodeId node, bool in) const {
    if (request_of(node) == kNone) return false;
    return in == (request(node).in_channels && reads_channels(graph_, node));
  }

  /// Excluded, or pruned by elements; an unnamed layer does not object.
  bool refuses(NodeId node) const {
    const LayerSetting& setting = setting_of(node);
    return setting.state == LayerSetting::State::kExcluded ||
           (setting.state == LayerSetting::State::kPruned && request_of(node) == kNone);
  }

  bool add_consumers(const Group& group, std::vector<NodeId>& askers) const {
    if (!any_in_) return false;
    bool added = false;
    for (const NodeId node : layers_of(graph_, layers_, group, Role::kIn)) {
      if (!asks(node, true)) continue;
      askers.push_back(node);
      added = true;
    }
    return added;
  }

  /// Smaller is more conservative.
  std::pair<int, double> care(NodeId node) const {
    const Request& asked = request(node);
    if (asked.aligned_with != kNone) return {0, 0};
    if (asked.amount || asked.threshold) return {2, 0};
    return {1, asked.ratio};
  }

  std::string asked(NodeId node) const {
    const Request& request = this->request(node);
    std::string what = "asks for " + formatted("%g", request.ratio);
    if (request.aligned_with != kNone) what = "follows " + quoted(graph_, request.aligned_with);
    if (request.threshold) what = "has the threshold " + formatted("%g", *request.threshold);
    if (request.amount) what = "asks for a budget of " + formatted("%g", *request.amount);
    return quoted(graph_, node) + ' ' + what;
  }
  std::string refusal(NodeId node) const {
    const LayerSetting::State state = setting_of(node).state;
    const char* why = state == LayerSetting::State::kExcluded ? " is excluded"
                      : state == LayerSetting::State::kUnnamed
                          ? " is not named by the configuration"
                      : request_of(node) == kNone
                          ? " is pruned by single elements"
                          : " asks for the channels that it reads, not for those it makes";
    return quoted(graph_, node) + why;
  }

  const Graph& graph_;
  const Layers& layers_;
  const Settings& settings_;
  std::vector<bool> by_channel_;  // per request
  bool any_in_ = false;
};

}  // namespace

std::vector<NodeId> layers_of(const Graph& graph, const Layers& layers, const Group& group,
                              Role role) {
  std::vector<NodeId> result;
  for (const Member& member : group.members) {
    const Weight& weight = graph.weight_of(member.value);
    if (member.role != role || weight.dims.size() < 2 || member.node == kNone) continue;
    std::vector<NodeId> found = layers.using_weight_of(member.node);
    // The first reader may compute a constant; the layer is another.
    if (found.empty()) found = layers.reading(member.value);
    result.insert(result.end(), found.begin(), found.end());
  }
  sort_unique(result);
  return result;
}

bool reads_channels(const Graph& graph, NodeId layer) {
  return schema_of(graph.node(layer)).linear.kind != LinearKind::kLookup;
}

Followed follow(const Graph& graph, const Layers& layers, const Coupling& coupling,
                const Settings& settings) {
  const TiedWidths follower(graph, layers, settings);
  Followed result;
  for (const GroupId g : coupling.groups.ids()) {
    std::string reason;
    result.request.push_back(follower.decide(coupling.groups[g], reason));
    if (!reason.empty()) {
      result.conflicts.push_back({g, std::move(reason)});
    }
  }
  return result;
}

namespace {

/// The channels of a group as one of its layers has them: rows of its matrix, by channel.
struct Rows {
  GroupId group = kNone;
  std::vector<int64_t> first;  ///< of each channel
};

/// Returns what a layer produces, in the order of its rows.
std::vector<Rows> rows_of(const Layers& layers, const Coupling& coupling, const Graph& graph,
                          NodeId layer) {
  std::vector<Rows> result;
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    for (const Member& member : group.members) {
      const Weight& weight = graph.weight_of(member.value);
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
