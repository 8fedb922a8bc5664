#include "parsimony/graph/graph.h"

#include <algorithm>
#include <utility>

#include "parsimony/graph/errors.h"

namespace parsimony {
namespace {

/// @throws ModelError if a value has two origins: it would be ambiguous which one is read.
void link_producers(Graph& graph) {
  for (Value& value : graph.values) value.producer = kNone;
  for (const NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      Value& value = graph.value(output);
      if (value.producer != kNone || value.weight != kNone || value.is_input) {
        throw errors::produced_twice(label_of(graph, node), value.name);
      }
      value.producer = n;
    }
  }
}

void link_uses(Graph& graph) {
  for (Value& value : graph.values) value.uses.clear();
  for (const NodeId n : graph.nodes.ids()) {
    const std::vector<ValueId>& inputs = graph.nodes[n].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kNone) continue;
      graph.value(inputs[i]).uses.push_back({n, static_cast<int>(i)});
    }
  }
}

void link_owners(Graph& graph) {
  for (Body& body : graph.bodies) body.owner = kNone;
  for (const NodeId n : graph.nodes.ids()) {
    for (const BodyId b : graph.nodes[n].bodies) {
      graph.bodies[b].owner = n;
    }
  }
}

/// Dependencies of nodes in addition to the producers of their operands: an owner depends on all
/// nodes of its bodies, and these on the producers of what the owner reads, since it may become an
/// input of the body.
IdVector<NodeId, std::vector<NodeId>> waits_of_bodies(const Graph& graph) {
  IdVector<NodeId, std::vector<NodeId>> waits(graph.nodes.size());
  for (const NodeId n : graph.nodes.ids()) {
    for (BodyId b = graph.nodes[n].body; b != kNone;) {
      const Body& body = graph.bodies[b];
      b = body.around;
      if (body.owner == kNone) continue;
      waits[body.owner].push_back(n);
      for (const ValueId read : graph.node(body.owner).inputs) {
        const NodeId producer = read == kNone ? kNone : graph.value(read).producer;
        if (producer != kNone) waits[n].push_back(producer);
      }
    }
  }
  return waits;
}

enum class Visit : uint8_t { kNew, kOpen, kDone };

/// Each node after its producers, otherwise in file order: a sorted file stays as it is. Depth
/// first with a stack of its own, since a deep network would exhaust the machine's.
std::vector<NodeId> sorted_nodes(const Graph& graph) {
  struct Frame {
    NodeId node;
    size_t next_wait;
  };
  const auto waits = waits_of_bodies(graph);
  const auto waited_for = [&](NodeId id, size_t i) {
    const std::vector<ValueId>& inputs = graph.node(id).inputs;
    if (i >= inputs.size()) return waits[id][i - inputs.size()];
    return inputs[i] == kNone ? kNone : graph.value(inputs[i]).producer;
  };
  std::vector<NodeId> order;
  order.reserve(graph.nodes.size());
  IdVector<NodeId, Visit> visits(graph.nodes.size(), Visit::kNew);
  std::vector<Frame> stack;
  for (const NodeId root : graph.nodes.ids()) {
    if (visits[root] != Visit::kNew) continue;
    visits[root] = Visit::kOpen;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const size_t count = graph.node(frame.node).inputs.size() + waits[frame.node].size();
      if (frame.next_wait == count) {
        visits[frame.node] = Visit::kDone;
        order.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      const NodeId producer = waited_for(frame.node, frame.next_wait++);
      if (producer == kNone) continue;
      Visit& visit = visits[producer];
      if (visit == Visit::kOpen) {
        throw ModelError("node ", in_quotes(label_of(graph, graph.node(producer))),
                         ": the graph has a cycle: the node needs its own output");
      }
      if (visit == Visit::kDone) continue;
      visit = Visit::kOpen;
      stack.push_back({producer, 0});
    }
  }
  return order;
}

}  // namespace

ValueId Graph::find(std::string_view value_name) const {
  const auto it = std::ranges::find(values, value_name, &Value::name);
  return it == values.end() ? kNone : values.id_of(*it);
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
  link_owners(graph);
  const std::vector<NodeId> order = sorted_nodes(graph);
  if (!std::ranges::is_sorted(order)) {
    IdVector<NodeId, Node> nodes;
    nodes.reserve(order.size());
    for (const NodeId node : order) nodes.push_back(std::move(graph.nodes[node]));
    graph.nodes = std::move(nodes);
    link_producers(graph);
    link_owners(graph);
  }
  link_uses(graph);
}

}  // namespace parsimony
