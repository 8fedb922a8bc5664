// Removes unused values: sizes read only by checks, transposed weights that an operator uses
// directly.
#include <utility>

#include "parsimony/torch_io/script/builder_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {
namespace {

struct Live {
  IdVector<NodeId, bool> nodes;
  IdVector<ValueId, bool> values;
};

Live find_live(const Graph& graph, const std::vector<ValueId>& kept) {
  Live live{IdVector<NodeId, bool>(graph.nodes.size()),
            IdVector<ValueId, bool>(graph.values.size())};
  const auto read = [&](ValueId value) {
    if (value != kNone) live.values[value] = true;
  };
  for (const ValueId value : graph.inputs) read(value);
  for (const ValueId value : graph.outputs) read(value);
  for (const ValueId value : kept) read(value);
  for (const ValueId v : graph.values.ids()) {
    if (graph.values[v].captured) live.values[v] = true;
  }
  for (const NodeId n : graph.nodes.reversed_ids()) {
    const Node& node = graph.nodes[n];
    for (const ValueId output : node.outputs) {
      if (live.values[output]) live.nodes[n] = true;
    }
    if (!live.nodes[n]) continue;
    for (const ValueId input : node.inputs) read(input);
    for (const ValueId output : node.outputs) read(output);
    for (const BodyId b : node.bodies) {
      for (const ValueId input : graph.bodies[b].inputs) read(input);
      for (const ValueId output : graph.bodies[b].outputs) read(output);
    }
  }
  return live;
}

/// Drops unused items. @returns the new id of each; kNone for dropped ones
template <typename Id, typename T>
IdVector<Id, Id> drop_dead(IdVector<Id, T>& items, const IdVector<Id, bool>& live) {
  IdVector<Id, Id> ids(items.size());
  IdVector<Id, T> rest;
  for (const Id id : items.ids()) {
    if (live[id]) ids[id] = rest.push_back(std::move(items[id]));
  }
  items = std::move(rest);
  return ids;
}

template <typename Id, typename T>
void rekey(std::unordered_map<Id, T>& map, const IdVector<Id, Id>& ids) {
  std::unordered_map<Id, T> rest;
  for (auto& [id, item] : map) {
    const Id now = ids[id];
    if (now != kNone) rest.emplace(now, std::move(item));
  }
  map = std::move(rest);
}

template <typename T>
void revalue(std::vector<T>& items, const IdVector<ValueId, ValueId>& ids) {
  for (T& item : items) item.value = ids[item.value];
  std::erase_if(items, [](const T& item) { return item.value == kNone; });
}

void renumber_values(Graph& graph, const IdVector<ValueId, ValueId>& ids) {
  const auto rename = [&](std::vector<ValueId>& list) {
    for (ValueId& value : list) {
      if (value != kNone) value = ids[value];
    }
  };
  rename(graph.inputs);
  rename(graph.outputs);
  for (auto& [value, why] : graph.pinned_values) value = ids[value];
  std::erase_if(graph.pinned_values, [](const auto& kept) { return kept.first == kNone; });
  for (Node& node : graph.nodes) {
    rename(node.inputs);
    rename(node.outputs);
  }
  for (Body& body : graph.bodies) {
    rename(body.inputs);
    rename(body.outputs);
    std::erase(body.inputs, ValueId());  // of an operator that was dropped
    std::erase(body.outputs, ValueId());
  }
}

void drop_weights(Graph& graph) {
  IdVector<WeightId, bool> live(graph.weights.size());
  for (const Value& value : graph.values) {
    if (value.weight != kNone) live[value.weight] = true;
  }
  const IdVector<WeightId, WeightId> ids = drop_dead(graph.weights, live);
  for (Value& value : graph.values) {
    if (value.weight != kNone) value.weight = ids[value.weight];
  }
}

}  // namespace

void Builder::compact() {
  const Live live = find_live(graph_, kept_);
  const IdVector<NodeId, NodeId> nodes = drop_dead(graph_.nodes, live.nodes);
  const IdVector<ValueId, ValueId> values = drop_dead(graph_.values, live.values);
  for (auto& [id, written] : origins_.constants) {
    if (written.start_of != kNone) written.start_of = values[written.start_of];
  }
  rekey(origins_.constants, values);
  for (auto& [tensor, value] : origins_.tensors) value = values[value];
  std::erase_if(origins_.tensors, [](const auto& entry) { return entry.second == kNone; });
  rekey(origins_.operands, nodes);
  rekey(origins_.attributes, nodes);
  revalue(origins_.size_literals, values);
  revalue(origins_.frozen, values);
  for (Check& check : origins_.checks) {
    for (Size& size : check.sizes) size.value = values[size.value];
  }
  renumber_values(graph_, values);
  drop_weights(graph_);
  bases_.clear();
  complex_.clear();
}

}  // namespace parsimony::torch_io::script
