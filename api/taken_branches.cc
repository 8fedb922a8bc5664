#include "parsimony/api/taken_branches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "parsimony/api/network_error.h"
#include "parsimony/api/recovery/part.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/speedup/fit_layers.h"

namespace parsimony {
namespace {

/// "y::then_branch"
std::string path_of(const Graph& graph, const Body& body) {
  return str_cat(key_of(graph, graph.node(body.owner)), kInside, body.attribute);
}

bool is_true(const HostTensor& condition) {
  return condition.count() > 0 && condition.number(0) != 0;
}

/// Conditions that have been computed, and what all runs agree on.
using Conditions = std::map<ValueId, std::optional<bool>>;

/// Computes conditions on all runs. @returns values of those that never differ
Conditions constant_conditions(Engine& engine, const Graph& graph,
                               const std::set<ValueId>& conditions, const EachRun& runs) {
  Conditions found;
  std::vector<ValueId> computed;
  for (const ValueId v : conditions) {
    const WeightId weight = graph.value(v).weight;
    if (weight == kNone) computed.push_back(v);
    if (weight != kNone) found[v] = is_true(to_host(graph.weight(weight)));
  }
  if (computed.empty()) return found;
  const Graph network = part_for(graph, computed);
  Part part(engine, network);
  try {
    runs([&](const EngineValues& inputs) {
      const TensorList values = on_host(part.run(inputs));
      for (size_t i = 0; i < computed.size(); ++i) {
        const bool now = is_true(numbers_of(values[i]));
        const auto [known, is_new] = found.try_emplace(computed[i], now);
        if (!is_new && known->second != now) known->second.reset();
      }
    });
  } catch (const UnsupportedError&) {
    for (const ValueId v : computed) found.erase(v);
  }
  return found;
}

}  // namespace

std::vector<std::string> branches_taken(Engine& engine, const Graph& graph, const EachRun& runs) {
  std::vector<std::string> taken;
  std::set<NodeId> seen;
  while (true) {
    const Hoisted hoisted(graph, taken);
    const Graph& now = hoisted.graph();
    const auto is_then = [&](BodyId b) { return now.bodies[b].attribute == "then_branch"; };
    std::vector<NodeId> open;
    std::set<ValueId> conditions;
    for (const NodeId n : now.nodes.ids()) {
      const Node& node = now.node(n);
      const bool chooses =
          node.body == kNone && !node.inputs.empty() && std::ranges::any_of(node.bodies, is_then);
      if (!chooses || !seen.insert(n).second) continue;
      open.push_back(n);
      conditions.insert(node.inputs.front());
    }
    if (open.empty()) return taken;
    const Conditions found = constant_conditions(engine, now, conditions, runs);
    for (const NodeId n : open) {
      const auto condition = found.find(now.node(n).inputs.front());
      if (condition == found.end() || !condition->second) continue;
      for (const BodyId b : now.node(n).bodies) {
        if (is_then(b) == *condition->second) taken.push_back(path_of(now, now.bodies[b]));
      }
    }
  }
}

Hoisted::Hoisted(const Graph& graph, const std::vector<std::string>& branches) : original_(&graph) {
  if (branches.empty()) return;
  IdVector<BodyId, bool> leaves(graph.bodies.size(), false);
  for (const BodyId b : graph.bodies.ids()) {
    const Body& body = graph.bodies[b];
    leaves[b] = body.owner != kNone && contains(branches, path_of(graph, body));
  }
  const auto outside = [&](BodyId b) {
    while (b != kNone && leaves[b]) b = graph.bodies[b].around;
    return b;
  };
  changed_ = graph;
  for (Node& node : changed_->nodes) node.body = outside(node.body);
  for (const BodyId b : graph.bodies.ids()) {
    changed_->bodies[b].around = outside(graph.bodies[b].around);
    if (!leaves[b]) continue;
    for (const BodyId other : graph.node(graph.bodies[b].owner).bodies) {
      changed_->bodies[other].outputs = graph.bodies[b].outputs;
    }
  }
}

}  // namespace parsimony
