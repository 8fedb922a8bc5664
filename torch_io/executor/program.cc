#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/torch_io/executor/choices.h"
#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {
namespace {

/// Frees values after their last use in the list of steps that computes them, so that a body, which
/// may run several times, frees nothing of enclosing graphs.
class Releases {
 public:
  Releases(const Graph& graph, Program& program)
      : graph_(graph), program_(program), home_(graph.values.size(), kNone) {
    for (const BodyId b : graph.bodies.ids()) {
      for (const ValueId v : graph.bodies[b].inputs) home_[v] = b;
    }
    for (const Node& node : graph.nodes) {
      for (const ValueId v : node.outputs) {
        if (v != kNone) home_[v] = node.body;
      }
    }
  }

  /// @param results  of the body; those of the program, which may lie in bodies, stay in any case
  void place(std::vector<Step>& steps, const std::vector<ValueId>& results, BodyId home) {
    IdVector<ValueId, bool> needed(graph_.values.size(), false);
    for (const ValueId v : program_.outputs) needed[v] = true;
    for (const ValueId v : results) needed[v] = true;
    for (size_t s = steps.size(); s-- > 0;) {
      Step& step = steps[s];
      const auto last_use = [&](ValueId v) {
        if (v == kNone || home_[v] != home || needed[v]) return;
        if (program_.weight_of[v] != kNone) return;
        needed[v] = true;
        step.frees.push_back(v);
      };
      for (const ValueId v : step.node.outputs) last_use(v);
      each_read(step.node, last_use);
    }
  }

 private:
  /// Visits the operands, and values read by the bodies.
  template <typename Visit>
  void each_read(const Node& node, const Visit& visit) const {
    for (const ValueId v : node.inputs) visit(v);
    for (const BodyId b : node.bodies) {
      const BodyProgram& body = program_.bodies[b];
      for (const Step& step : body.steps) each_read(step.node, visit);
      for (const ValueId v : body.outputs) visit(v);
    }
  }

  const Graph& graph_;
  Program& program_;
  IdVector<ValueId, BodyId> home_;  ///< the body that computes it
};

}  // namespace

Program::Program(const Graph& graph) : inputs(graph.inputs), outputs(graph.outputs) {
  for (const Value& value : graph.values) {
    names.push_back(value.name);
    weight_of.push_back(value.weight);
  }
  weights.resize(graph.weights.size());
  for (const WeightId w : weights.ids()) {
    weights[w].dims = graph.weights[w].dims;
    by_name.emplace(graph.weights[w].name, w);
  }
  for (const Body& body : graph.bodies) {
    bodies.push_back({body.attribute, {}, body.inputs, body.outputs});
  }
  for (const Node& node : graph.nodes) {
    auto& list = node.body == kNone ? steps : bodies[node.body].steps;
    Step& step = list.emplace_back();
    step.node = node;
    step.op = find_operator(node.domain, node.op);
    step.key = key_of(graph, node);
    step.chooses = chooses(node);
    for (const ValueId v : node.inputs) {
      step.types.push_back(v == kNone ? DType::kUnknown : graph.value(v).dtype);
    }
  }
  Releases releases(graph, *this);
  releases.place(steps, {}, kNone);
  for (const BodyId b : bodies.ids()) releases.place(bodies[b].steps, bodies[b].outputs, b);
}

const StoredWeight* Program::stored(ValueId v) const {
  if (v == kNone || weight_of[v] == kNone) return nullptr;
  return &weights[weight_of[v]];
}

bool has_tensor(const Weight& weight) {
  switch (weight.dtype) {
    case DType::kUnknown:
    case DType::kString:
    case DType::kUInt64:
      return false;
    default:
      return true;
  }
}

namespace {

/// Whether an operator passes it to its body.
bool is_given(const Graph& graph, ValueId v) {
  return std::any_of(graph.bodies.begin(), graph.bodies.end(), [&](const Body& body) {
    return std::find(body.inputs.begin(), body.inputs.end(), v) != body.inputs.end();
  });
}

}  // namespace

std::string why_not(const Graph& graph, const Node& node) {
  if (node.has_subgraph && !is_control(node)) return "it has a subgraph";
  if (draws(graph, node)) return "it draws random numbers, which differ between runs";
  if (!is_control(node) && find_operator(node.domain, node.op) == nullptr)
    return graph.format == "onnx" ? "unknown operator; --ort-library can provide a kernel"
                                  : "unknown operator";
  for (const ValueId v : node.inputs) {
    if (v == kNone) continue;
    const Value& value = graph.value(v);
    const bool known = value.weight != kNone
                           ? has_tensor(graph.weight(value.weight))
                           : value.is_input || value.producer != kNone || is_given(graph, v);
    if (!known) {
      return "operand \"" + value.name + "\" is of type " + std::string(name_of(value.dtype));
    }
  }
  return "";
}

// Nodes that one kernel computes together.

namespace {

/// Counts the nodes and outputs that read each value.
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
  std::map<ValueId, NodeId> gates;  // by a Sigmoid's output with a single reader
  for (const NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    if (node.op == "Sigmoid" && readers[node.outputs.front()] == 1) gates[node.outputs.front()] = n;
  }
  std::vector<NodeId> removed;
  for (const NodeId n : graph.nodes.ids()) {
    Node& node = graph.nodes[n];
    if (node.op != "Mul") continue;
    for (const size_t i : {0, 1}) {
      const auto gate = gates.find(node.inputs[i]);
      if (gate == gates.end()) continue;
      const Node& sigmoid = graph.nodes[gate->second];
      const ValueId x = node.inputs[1 - i];
      if (sigmoid.inputs.front() != x || sigmoid.body != node.body) continue;
      removed.push_back(gate->second);
      node.op = "Swish";
      node.inputs = {x};
      break;
    }
  }
  Graph fused = graph;
  fused.nodes.clear();
  for (const NodeId n : graph.nodes.ids()) {
    if (!contains(removed, n)) fused.nodes.push_back(std::move(graph.nodes[n]));
  }
  return fused;
}

}  // namespace parsimony::executor
