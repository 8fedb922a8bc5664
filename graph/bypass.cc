#include "parsimony/graph/bypass.h"

#include <algorithm>
#include <string>

namespace parsimony {
namespace {

void check(const Graph& graph, const Node& node, int input) {
  const auto refuse = [&](const std::string& why) {
    throw errors::not_bypassed(label_of(graph, node), why);
  };
  if (node.outputs.size() != 1) refuse("it has several outputs");
  const bool there =
      input >= 0 && input < static_cast<int>(node.inputs.size()) && node.inputs[input] != kNone;
  if (!there) refuse("it has no operand " + std::to_string(input));
  const Value& output = graph.value(node.outputs[0]);
  if (output.is_output) refuse("its result is an output of the network");
  if (output.captured) refuse("its result leaves a subgraph");
}

/// Is the node still needed? `read` says which values are.
bool stays(const Graph& graph, const Node& node, const IdVector<ValueId, bool>& read) {
  return std::ranges::any_of(node.outputs, [&](ValueId v) {
    if (v == kNone) return false;
    const Value& value = graph.value(v);
    return read[v] || value.is_output || value.captured;
  });
}

/// Marks the nodes that lose their last reader with `gone`; what nothing read before stays.
void spread(const Graph& graph, IdVector<NodeId, bool>& gone) {
  IdVector<ValueId, bool> read(graph.values.size(), false);
  const auto was_read = [&](const Node& node) {
    return std::ranges::any_of(
        node.outputs, [&](ValueId v) { return v != kNone && !graph.value(v).uses.empty(); });
  };
  const auto lost_owner = [&](const Node& node) {
    if (node.body == kNone) return false;
    const NodeId owner = graph.bodies[node.body].owner;
    return owner == kNone || gone[owner];
  };
  for (const NodeId n : graph.nodes.reversed_ids()) {
    const Node& node = graph.nodes[n];
    if (gone[n]) continue;
    if (lost_owner(node) || (was_read(node) && !stays(graph, node, read))) {
      gone[n] = true;
      continue;
    }
    for (const ValueId v : node.inputs) {
      if (v != kNone) read[v] = true;
    }
  }
}

IdVector<ValueId, bool> read_weights(const Graph& graph) {
  IdVector<ValueId, bool> result;
  for (const Value& value : graph.values) {
    result.push_back(value.weight != kNone && !value.uses.empty());
  }
  return result;
}

}  // namespace

IdVector<NodeId, NodeId> bypass(Graph& graph, NodeId id, int input) {
  const Node& node = graph.node(id);
  check(graph, node, input);
  const ValueId from = node.outputs[0];
  const ValueId to = node.inputs[input];
  const IdVector<ValueId, bool> was_read = read_weights(graph);
  IdVector<NodeId, bool> gone(graph.nodes.size(), false);
  gone[id] = true;
  for (Node& reader : graph.nodes) std::ranges::replace(reader.inputs, from, to);
  spread(graph, gone);

  IdVector<NodeId, NodeId> numbers(graph.nodes.size(), kNone);
  IdVector<NodeId, Node> nodes;
  nodes.reserve(graph.nodes.size());
  for (const NodeId n : graph.nodes.ids()) {
    if (gone[n]) continue;
    numbers[n] = nodes.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(nodes);
  finish(graph);
  for (const ValueId v : graph.values.ids()) {
    Value& value = graph.values[v];
    if (was_read[v] && value.uses.empty() && !value.captured) value.weight = kNone;
  }
  return numbers;
}

UnsupportedError errors::cannot_bypass(std::string_view node) {
  return UnsupportedError("the block of node \"" + std::string(node) +
                          "\" cannot be removed: live modules keep their layers; export it to ONNX "
                          "or TorchScript first");
}

ModelError errors::not_bypassed(std::string_view node, std::string_view why) {
  return ModelError("the block of node \"" + std::string(node) +
                    "\" cannot be removed: " + std::string(why));
}

}  // namespace parsimony
