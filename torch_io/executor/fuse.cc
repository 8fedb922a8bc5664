// Nodes that one kernel computes together.
#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {
namespace {

/// How many nodes and outputs read each value.
IdVector<ValueId, int> readers_of(const Graph& graph) {
  IdVector<ValueId, int> readers(graph.values.size(), 0);
  const auto read = [&](ValueId v) {
    if (v != kNone) ++readers[v];
  };
  for (const Node& node : graph.nodes) std::ranges::for_each(node.inputs, read);
  for (const Body& body : graph.bodies) std::ranges::for_each(body.outputs, read);
  std::ranges::for_each(graph.outputs, read);
  return readers;
}

}  // namespace

Graph with_swish(Graph graph) {
  const IdVector<ValueId, int> readers = readers_of(graph);
  std::map<ValueId, NodeId> gates;  // by what a Sigmoid gives to one node only
  for (const NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    if (node.op == "Sigmoid" && readers[node.outputs.front()] == 1) gates[node.outputs.front()] = n;
  }
  std::vector<NodeId> gone;
  for (const NodeId n : graph.nodes.ids()) {
    Node& node = graph.nodes[n];
    if (node.op != "Mul") continue;
    for (const size_t i : {0, 1}) {
      const auto gate = gates.find(node.inputs[i]);
      if (gate == gates.end()) continue;
      const Node& sigmoid = graph.nodes[gate->second];
      const ValueId x = node.inputs[1 - i];
      if (sigmoid.inputs.front() != x || sigmoid.body != node.body) continue;
      gone.push_back(gate->second);
      node.op = "Swish";
      node.inputs = {x};
      break;
    }
  }
  Graph fused = graph;
  fused.nodes.clear();
  for (const NodeId n : graph.nodes.ids()) {
    if (!contains(gone, n)) fused.nodes.push_back(std::move(graph.nodes[n]));
  }
  return fused;
}

}  // namespace parsimony::executor
