#include "parsimony/pruners/follow.h"

#include <algorithm>
#include <cstdio>

#include "parsimony/base/ranges.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {

namespace {

std::string quoted(const Graph& graph, NodeId node) {
  return '"' + label_of(graph, graph.node(node)) + '"';
}

std::string decimal(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

/// Decides for the groups of one network.
class Follower {
 public:
  Follower(const Graph& graph, const Layers& layers, const Settings& settings)
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
    std::vector<NodeId> producers = layers_of(graph_, layers_, group, Role::kOut);
    // Channels that no layer makes, of an input, of padding or of learned queries, are decided by
    // the layers that read them.
    if (producers.empty()) producers = layers_of(graph_, layers_, group, Role::kIn);
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

 private:
  const LayerSetting& setting_of(NodeId node) const { return settings_.layers[node]; }
  int request_of(NodeId node) const {
    const LayerSetting& setting = setting_of(node);
    if (setting.state != LayerSetting::State::kPruned) return kNone;
    return by_channel_[setting.request] ? setting.request : kNone;
  }
  const Request& request(NodeId node) const { return settings_.requests[request_of(node)]; }

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
    std::string what = "asks for " + decimal(request.ratio);
    if (request.aligned_with != kNone) what = "follows " + quoted(graph_, request.aligned_with);
    if (request.threshold) what = "has the threshold " + decimal(*request.threshold);
    if (request.amount) what = "asks for a budget of " + decimal(*request.amount);
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
    const Weight& weight = graph.weight(graph.value(member.value).weight);
    if (member.role != role || weight.dims.size() < 2 || member.node == kNone) continue;
    const std::vector<NodeId> found = layers.using_weight_of(member.node);
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
  const Follower follower(graph, layers, settings);
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

}  // namespace parsimony
