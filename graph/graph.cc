#include "parsimony/graph/graph.h"

#include <algorithm>
#include <utility>

#include "parsimony/graph/errors.h"

namespace parsimony {
namespace {

/// @throws ModelError if a value has two origins: it would be ambiguous which one is read.
void link_producers(Graph& graph) {
  for (Value& value : graph.values) value.producer = kNone;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      Value& value = graph.value(output);
      if (value.producer != kNone || value.weight != kNone || value.is_input) {
        throw errors::produced_twice(label_of(graph, node), value.name);
      }
      value.producer = static_cast<NodeId>(n);
    }
  }
}

void link_uses(Graph& graph) {
  for (Value& value : graph.values) value.uses.clear();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::vector<ValueId>& inputs = graph.nodes[n].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kNone) continue;
      graph.value(inputs[i]).uses.push_back({static_cast<NodeId>(n), static_cast<int>(i)});
    }
  }
}

/// What a node waits for: its operands, then what its bodies read around it.
size_t count_of_reads(const Node& node) {
  size_t count = node.inputs.size();
  for (const Body& body : node.bodies) count += body.captures.size();
  return count;
}

ValueId read_at(const Node& node, size_t i) {
  if (i < node.inputs.size()) return node.inputs[i];
  i -= node.inputs.size();
  auto body = node.bodies.begin();
  while (i >= body->captures.size()) i -= (body++)->captures.size();
  return body->captures[i];
}

enum class Visit : uint8_t { kNew, kOpen, kDone };

/// Each node after its producers, otherwise in file order: a sorted file stays as it is. Depth
/// first with a stack of its own, since a deep network would exhaust the machine's.
std::vector<NodeId> sorted_nodes(const Graph& graph) {
  struct Frame {
    NodeId node;
    size_t next_read;
  };
  std::vector<NodeId> order;
  order.reserve(graph.nodes.size());
  std::vector<Visit> visits(graph.nodes.size(), Visit::kNew);
  std::vector<Frame> stack;
  for (size_t root = 0; root < graph.nodes.size(); ++root) {
    if (visits[root] != Visit::kNew) continue;
    visits[root] = Visit::kOpen;
    stack.push_back({static_cast<NodeId>(root), 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const Node& node = graph.node(frame.node);
      if (frame.next_read == count_of_reads(node)) {
        visits[static_cast<size_t>(frame.node)] = Visit::kDone;
        order.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      const ValueId read = read_at(node, frame.next_read++);
      const NodeId producer = read == kNone ? kNone : graph.value(read).producer;
      if (producer == kNone) continue;
      Visit& visit = visits[static_cast<size_t>(producer)];
      if (visit == Visit::kOpen) throw errors::cycle(label_of(graph, graph.node(producer)));
      if (visit == Visit::kDone) continue;
      visit = Visit::kOpen;
      stack.push_back({producer, 0});
    }
  }
  return order;
}

}  // namespace

ValueId Graph::find(std::string_view value_name) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == value_name) return static_cast<ValueId>(i);
  }
  return kNone;
}

const std::string& key_of(const Graph& graph, const Node& node) {
  static const std::string nothing;
  for (const ValueId output : node.outputs) {
    if (output != kNone && !graph.value(output).name.empty()) return graph.value(output).name;
  }
  return nothing;
}

const std::string& label_of(const Graph& graph, const Node& node) {
  return node.name.empty() ? key_of(graph, node) : node.name;
}

void finish(Graph& graph) {
  for (const ValueId input : graph.inputs) graph.value(input).is_input = true;
  for (const ValueId output : graph.outputs) graph.value(output).is_output = true;
  link_producers(graph);
  const std::vector<NodeId> order = sorted_nodes(graph);
  if (!std::is_sorted(order.begin(), order.end())) {
    std::vector<Node> nodes;
    nodes.reserve(order.size());
    for (const NodeId node : order)
      nodes.push_back(std::move(graph.nodes[static_cast<size_t>(node)]));
    graph.nodes = std::move(nodes);
    link_producers(graph);
  }
  link_uses(graph);
}

}  // namespace parsimony
