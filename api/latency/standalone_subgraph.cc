#include "parsimony/api/latency/standalone_subgraph.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cstring>

#include "parsimony/base/errors.h"
#include "parsimony/graph/elements.h"

namespace parsimony {
namespace {

/// The elements of `constant` in its type, for the types of shape arithmetic.
std::pair<DType, std::vector<std::byte>> elements_of(const HostTensor& constant) {
  const bool as_it_is = constant.dtype == DType::kBool || constant.dtype == DType::kInt32;
  const DType type = constant.floating() ? DType::kFloat32
                     : as_it_is          ? constant.dtype
                                         : DType::kInt64;
  const size_t size = size_of(type);
  std::vector<std::byte> bytes(constant.count() * size);
  for (size_t i = 0; i < constant.floats.size(); ++i) {
    write_number(constant.floats[i], type, bytes.data() + i * size);
  }
  for (size_t i = 0; i < constant.ints.size(); ++i) {
    const int64_t number = type == DType::kBool ? int64_t{constant.ints[i] != 0} : constant.ints[i];
    std::memcpy(bytes.data() + i * size, &number, size);  // little-endian: the low bytes
  }
  return {type, std::move(bytes)};
}

class Extraction {
 public:
  Extraction(const Graph& network, const Facts& facts, std::span<const NodeId> nodes)
      : network_(network), facts_(facts), nodes_(nodes) {
    for (const Weight& weight : network.weights) {
      if (!is_floating(weight.dtype)) continue;
      usual_ = weight.dtype;
      break;
    }
  }

  StandaloneSubgraph run() {
    subgraph_.graph.format = network_.format;
    for (const NodeId id : nodes_) inside_.insert(id);
    for (const NodeId id : nodes_) add(id);
    for (const NodeId id : nodes_) {
      for (const ValueId v : network_.node(id).outputs) {
        if (v != kNone && leaves(v)) mark_output(map_.at(v));
      }
    }
    finish(subgraph_.graph);
    return std::move(subgraph_);
  }

 private:
  void add(NodeId id) {
    Node node = network_.node(id);
    for (ValueId& v : node.inputs) v = operand(v);
    for (ValueId& v : node.outputs) v = v == kNone ? kNone : copied(v);
    subgraph_.graph.nodes.push_back(std::move(node));
  }

  /// Copies a value of the network without its producer.
  ValueId copied(ValueId v) {
    const auto [it, fresh] = map_.try_emplace(v, kNone);
    if (!fresh) return it->second;
    const Value& original = network_.value(v);
    Value value;
    value.name = original.name;
    value.dtype = original.dtype == DType::kUnknown ? usual_ : original.dtype;
    return it->second = subgraph_.graph.values.push_back(std::move(value));
  }

  ValueId operand(ValueId v) {
    if (v == kNone) return kNone;
    const auto known = map_.find(v);
    if (known != map_.end()) return known->second;
    const Value& original = network_.value(v);
    if (original.weight != kNone) return weight(v, network_.weight(original.weight));
    const auto& constant = facts_.constants[v];
    if (facts_.computed[v] && constant) return literal(v, *constant);
    if (original.producer != kNone && is_of_weights(original.producer)) {
      add(original.producer);
      return map_.at(v);
    }
    return input(v);
  }

  ValueId weight(ValueId v, const Weight& view) {
    const ValueId id = copied(v);
    subgraph_.graph.value(id).weight = subgraph_.graph.weights.push_back(view);
    subgraph_.graph.value(id).dtype = view.dtype;
    subgraph_.graph.weights.back().name = network_.value(v).name;
    return id;
  }

  ValueId literal(ValueId v, const HostTensor& constant) {
    auto [type, bytes] = elements_of(constant);
    const auto& memory = subgraph_.memory.emplace_back(std::move(bytes));
    return weight(v, {network_.value(v).name, type, constant.dims, memory.data(), size_of(type)});
  }

  ValueId input(ValueId v) {
    const auto& shape = facts_.shapes[v];
    if (!shape) {
      throw UnsupportedError("the shape of \"" + network_.value(v).name + "\" is not known");
    }
    const ValueId id = copied(v);
    subgraph_.graph.value(id).declared = *shape;
    subgraph_.graph.value(id).is_input = true;
    subgraph_.graph.inputs.push_back(id);
    return id;
  }

  bool is_of_weights(NodeId id) const {
    const Node& node = network_.node(id);
    return !node.has_subgraph && std::ranges::all_of(node.inputs, [&](ValueId v) {
      if (v == kNone) return true;
      const Value& value = network_.value(v);
      if (value.weight != kNone || facts_.computed[v]) return true;
      return value.producer != kNone && is_of_weights(value.producer);
    });
  }

  /// Is it read outside the subgraph, or not at all?
  bool leaves(ValueId v) const {
    const Value& value = network_.value(v);
    return value.is_output || value.uses.empty() ||
           std::ranges::any_of(value.uses,
                               [&](const Use& use) { return !inside_.contains(use.node); });
  }

  void mark_output(ValueId v) {
    subgraph_.graph.value(v).is_output = true;
    subgraph_.graph.outputs.push_back(v);
  }

  const Graph& network_;
  const Facts& facts_;
  std::span<const NodeId> nodes_;
  DType usual_ = DType::kFloat32;
  StandaloneSubgraph subgraph_;
  absl::flat_hash_set<NodeId> inside_;
  absl::flat_hash_map<ValueId, ValueId> map_;
};

}  // namespace

StandaloneSubgraph standalone_subgraph(const Graph& network, const Facts& facts,
                                       std::span<const NodeId> nodes) {
  return Extraction(network, facts, nodes).run();
}

}  // namespace parsimony
