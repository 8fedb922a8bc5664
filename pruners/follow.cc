#include "parsimony/pruners/follow.h"

#include <algorithm>
#include <cstdio>

#include "parsimony/pruners/criterion.h"

namespace parsimony {

namespace {

using State = LayerSetting::State;

std::vector<NodeId> layers_of(const Graph& graph, const Layers& layers, const Group& group) {
  std::vector<NodeId> result;
  for (const Member& member : group.members) {
    const Weight& weight = graph.weight(graph.value(member.value).weight);
    if (member.role != Role::kOut || weight.dims.size() < 2 || member.node == kNone) continue;
    const std::vector<NodeId> found = layers.using_weight_of(member.node);
    result.insert(result.end(), found.begin(), found.end());
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

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
  Follower(const Graph& graph, const Settings& settings) : graph_(graph), settings_(settings) {
    for (const Request& request : settings.requests) {
      by_channel_.push_back(find_criterion(request.criterion).score != nullptr);
    }
  }

  /// Request that the layers agree on, kNone if their group stays whole; `reason` says why if it is
  /// not what all of them ask for.
  int decide(const std::vector<NodeId>& layers, std::string& reason) const {
    const auto is_asked = [&](NodeId node) { return request_of(node) != kNone; };
    if (std::none_of(layers.begin(), layers.end(), is_asked)) return kNone;
    const auto refuser = std::find_if_not(layers.begin(), layers.end(), is_asked);
    if (refuser != layers.end()) {
      reason = refusal(*refuser) + ", and " +
               quoted(graph_, *std::find_if(layers.begin(), layers.end(), is_asked)) +
               " is coupled with it: the group stays whole";
      return kNone;
    }
    const auto more_careful = [&](NodeId a, NodeId b) {
      return std::pair(ratio_of(a), request_of(a)) < std::pair(ratio_of(b), request_of(b));
    };
    const auto [least, most] = std::minmax_element(layers.begin(), layers.end(), more_careful);
    if (request_of(*least) != request_of(*most)) {
      reason = asked(*most) + ", " + asked(*least) + ": the group follows the latter";
    }
    return request_of(*least);
  }

 private:
  const LayerSetting& setting_of(NodeId node) const {
    return settings_.layers[static_cast<size_t>(node)];
  }
  int request_of(NodeId node) const {
    const LayerSetting& setting = setting_of(node);
    if (setting.state != State::kPruned) return kNone;
    return by_channel_[static_cast<size_t>(setting.request)] ? setting.request : kNone;
  }
  double ratio_of(NodeId node) const {
    return settings_.requests[static_cast<size_t>(request_of(node))].ratio;
  }
  std::string asked(NodeId node) const {
    return quoted(graph_, node) + " asks for " + decimal(ratio_of(node));
  }
  std::string refusal(NodeId node) const {
    const State state = setting_of(node).state;
    const char* why = state == State::kExcluded  ? " is excluded"
                      : state == State::kUnnamed ? " is not named by the configuration"
                                                 : " is pruned by single elements";
    return quoted(graph_, node) + why;
  }

  const Graph& graph_;
  const Settings& settings_;
  std::vector<bool> by_channel_;  // per request
};

}  // namespace

Followed follow(const Graph& graph, const Layers& layers, const Coupling& coupling,
                const Settings& settings) {
  const Follower follower(graph, settings);
  Followed result;
  for (size_t g = 0; g < coupling.groups.size(); ++g) {
    std::string reason;
    result.request.push_back(follower.decide(layers_of(graph, layers, coupling.groups[g]), reason));
    if (!reason.empty()) {
      result.compromises.push_back({static_cast<int>(g), std::move(reason)});
    }
  }
  return result;
}

}  // namespace parsimony
