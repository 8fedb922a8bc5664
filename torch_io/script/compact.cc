// Drops what nothing reads: sizes that only checks looked at, transposed weights that an operator
// took as they are.
#include <utility>

#include "parsimony/torch_io/script/builder_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {
namespace {

struct Live {
  std::vector<bool> nodes, values;
};

Live find_live(const Graph& graph, const std::vector<ValueId>& kept) {
  Live live{std::vector<bool>(graph.nodes.size()), std::vector<bool>(graph.values.size())};
  const auto read = [&](ValueId value) {
    if (value != kNone) live.values[value] = true;
  };
  for (const ValueId value : graph.inputs) read(value);
  for (const ValueId value : graph.outputs) read(value);
  for (const ValueId value : kept) read(value);
  for (const ValueId v : graph.values.ids()) {
    if (graph.values[v].captured) live.values[v] = true;
  }
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    for (const ValueId output : node.outputs) {
      if (live.values[output]) live.nodes[n] = true;
    }
    if (!live.nodes[n]) continue;
    for (const ValueId input : node.inputs) read(input);
    for (const ValueId output : node.outputs) read(output);
  }
  return live;
}

/// New index of each item that stays.
std::vector<int32_t> renumber(const std::vector<bool>& live) {
  std::vector<int32_t> ids;
  int32_t next = 0;
  for (const bool stays : live) ids.push_back(stays ? next++ : kNone);
  return ids;
}

template <typename T>
void drop_dead(std::vector<T>& items, const std::vector<bool>& live) {
  std::vector<T> rest;
  for (size_t i = 0; i < items.size(); ++i) {
    if (live[i]) rest.push_back(std::move(items[i]));
  }
  items = std::move(rest);
}

template <typename T>
void rekey(std::unordered_map<int32_t, T>& map, const std::vector<int32_t>& ids) {
  std::unordered_map<int32_t, T> rest;
  for (auto& [id, item] : map) {
    const int32_t now = ids[id];
    if (now != kNone) rest.emplace(now, std::move(item));
  }
  map = std::move(rest);
}

template <typename T>
void revalue(std::vector<T>& items, const std::vector<int32_t>& ids) {
  for (T& item : items) item.value = ids[item.value];
  std::erase_if(items, [](const T& item) { return item.value == kNone; });
}

void renumber_values(Graph& graph, const std::vector<int32_t>& ids) {
  const auto rename = [&](std::vector<ValueId>& list) {
    for (ValueId& value : list) {
      if (value != kNone) value = ids[value];
    }
  };
  rename(graph.inputs);
  rename(graph.outputs);
  for (auto& [value, why] : graph.whole) value = ids[value];
  std::erase_if(graph.whole, [](const auto& kept) { return kept.first == kNone; });
  for (Node& node : graph.nodes) {
    rename(node.inputs);
    rename(node.outputs);
  }
}

void drop_weights(Graph& graph) {
  IdVector<WeightId, bool> live(graph.weights.size());
  for (const Value& value : graph.values) {
    if (value.weight != kNone) live[value.weight] = true;
  }
  const std::vector<int32_t> ids = renumber(live);
  drop_dead(graph.weights, live);
  for (Value& value : graph.values) {
    if (value.weight != kNone) value.weight = ids[value.weight];
  }
}

}  // namespace

void Builder::compact() {
  const Live live = find_live(graph_, kept_);
  const std::vector<int32_t> nodes = renumber(live.nodes);
  const std::vector<int32_t> values = renumber(live.values);
  for (auto& [id, written] : origins_.constants) {
    if (written.start_of != kNone) written.start_of = values[written.start_of];
  }
  rekey(origins_.constants, values);
  rekey(origins_.operands, nodes);
  rekey(origins_.attributes, nodes);
  revalue(origins_.followers, values);
  revalue(origins_.frozen, values);
  for (Check& check : origins_.checks) {
    for (Size& size : check.sizes) size.value = values[size.value];
  }
  drop_dead(graph_.nodes, live.nodes);
  drop_dead(graph_.values, live.values);
  renumber_values(graph_, values);
  drop_weights(graph_);
  bases_.clear();
  facts_.reset();
}

}  // namespace parsimony::torch_io::script
