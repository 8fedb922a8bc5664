#include "parsimony/graph/model_editor.h"

#include <algorithm>
#include <cstring>

#include "parsimony/graph/blocks.h"
#include "parsimony/graph/element_type_impl.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/slice.h"

namespace parsimony {

void ModelEditor::set_number(const std::string& node, const std::string& attribute, double value) {
  throw errors::bad_attribute(node, attribute,
                              "cannot become " + std::to_string(value) + " in this format");
}

void ModelEditor::bypass(std::span<const BypassedNode> nodes) {
  if (!nodes.empty()) throw errors::cannot_bypass(nodes.front().node);
}

GraphEditor::GraphEditor(const Graph& original, Elements elements)
    : graph_(original), elements_(elements) {
  nodes_.reserve(original.nodes.size());
  for (const NodeId n : original.nodes.ids()) {
    nodes_.emplace(key_of(original, original.nodes[n]), n);
  }
  weights_.reserve(original.weights.size());
  for (const WeightId w : original.weights.ids()) {
    weights_.emplace(original.weights[w].name, w);
  }
}

void GraphEditor::bypass(std::span<const BypassedNode> nodes) {
  std::vector<Bypass> bypasses;
  for (const auto& [key, input] : nodes) bypasses.push_back({graph_.nodes.id_of(node(key)), input});
  const IdVector<NodeId, NodeId> numbers = parsimony::bypass(graph_, bypasses);
  for (auto& [name, id] : nodes_) id = numbers[id];
  absl::erase_if(nodes_, [](const auto& entry) { return entry.second == kNone; });
}

Node& GraphEditor::node(const std::string& key) {
  const auto it = nodes_.find(key);
  if (it == nodes_.end()) throw errors::not_in_model("node", key);
  return graph_.nodes[it->second];
}

WeightId GraphEditor::weight(const std::string& name) const {
  const auto it = weights_.find(name);
  if (it == weights_.end()) throw errors::not_in_model("tensor", name);
  return it->second;
}

ValueId GraphEditor::add_value(const std::string& name, WeightId weight) {
  Value value;
  value.name = name;
  value.weight = weight;
  value.dtype = graph_.weight(weight).dtype;
  return graph_.values.push_back(std::move(value));
}

void GraphEditor::connect(Node& node, int input, ValueId value) {
  if (std::ssize(node.inputs) <= input) node.inputs.resize(input + 1, kNone);
  node.inputs[input] = value;
}

void GraphEditor::copy(const std::string& name, const std::string& of, const std::string& consumer,
                       int input) {
  const WeightId source = weight(of);
  auto it = weights_.find(name);
  if (it == weights_.end()) {
    it = weights_.emplace(names_.emplace_back(name), graph_.weights.next_id()).first;
    Weight copied = graph_.weight(source);
    copied.name = name;
    graph_.weights.push_back(std::move(copied));
  }
  connect(node(consumer), input, add_value(name, it->second));
}

void GraphEditor::slice(const std::string& tensor, std::span<const AxisKeep> axes) {
  Weight& w = graph_.weights[weight(tensor)];
  check_slices(tensor, w.dims, axes);
  const Shape dims = sliced(w.dims, axes);
  if (elements_ == Elements::kAll || is_literal(w.dtype, element_count(dims))) {
    w.data = storage_.emplace_back(sliced_bytes(w.data, w.dims, w.stride, axes)).data();
  }
  w.dims = dims;
}

void GraphEditor::slice_input(const std::string& input, std::span<const AxisKeep> axes) {
  const ValueId v = graph_.find(input);
  if (v == kNone || !graph_.value(v).is_input) throw errors::not_in_model("input", input);
  auto& declared = graph_.value(v).declared;
  if (!declared) return;
  check_slices(input, *declared, axes);
  declared = sliced(*declared, axes);
}

void GraphEditor::assign(const std::string& tensor, std::span<const std::byte> values) {
  Weight& w = graph_.weights[weight(tensor)];
  const int64_t requested = element_count(w.dims) * size_of(w.dtype);
  const auto given = static_cast<int64_t>(values.size());
  if (given != requested) throw errors::wrong_bytes(tensor, requested, given);
  if (elements_ != Elements::kAll && !is_literal(w.dtype, element_count(w.dims))) return;
  w.data = storage_.emplace_back(values.begin(), values.end()).data();
  w.stride = size_of(w.dtype);
}

void GraphEditor::set_attribute(const std::string& key, const std::string& attribute,
                                std::span<const int64_t> values) {
  auto& attributes = node(key).attributes;
  const auto it =
      std::ranges::find_if(attributes, [&](const auto& a) { return a.first == attribute; });
  if (values.empty()) {
    if (it != attributes.end()) attributes.erase(it);
    return;
  }
  const bool scalar =
      it != attributes.end() ? std::holds_alternative<int64_t>(it->second) : values.size() == 1;
  Attribute value =
      scalar ? Attribute(values[0]) : Attribute(std::vector<int64_t>(values.begin(), values.end()));
  if (it != attributes.end()) {
    it->second = std::move(value);
  } else {
    attributes.emplace_back(attribute, std::move(value));
  }
}

void GraphEditor::set_number(const std::string& key, const std::string& attribute, double value) {
  for (auto& [name, old] : node(key).attributes) {
    if (name != attribute) continue;
    old = value;
    return;
  }
  node(key).attributes.emplace_back(attribute, value);
}

void GraphEditor::set_input(const std::string& key, int input, const HostTensor& constant) {
  const auto& bytes = storage_.emplace_back(to_bytes(constant));
  const auto id = graph_.weights.next_id();
  graph_.weights.push_back({key + ".constant" + std::to_string(input), constant.dtype,
                            constant.dims, bytes.data(), size_of(constant.dtype)});
  connect(node(key), input, add_value(graph_.weight(id).name, id));
}

}  // namespace parsimony
