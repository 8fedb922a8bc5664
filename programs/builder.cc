#include "parsimony/programs/builder.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {
namespace {

constexpr int kOpset = 21;

// Layers are displayed by the name of the module that owns their weight.
constexpr auto kLayers = std::to_array<std::string_view>(
    {"BatchNormalization", "Conv", "ConvTranspose", "Gather", "Gemm", "GroupNormalization", "Gru",
     "InstanceNormalization", "LayerNormalization", "Lstm", "MatMul", "PRelu", "Rnn"});

/// Returns "layer1.0.conv1" for "layer1.0.conv1.weight", "rnn.l0" for "rnn.weight_ih_l0"; else
/// empty.
std::string module_of(std::string_view weight) {
  const size_t dot = weight.rfind('.');
  const std::string_view path = dot == std::string_view::npos ? "" : weight.substr(0, dot);
  std::string_view last = dot == std::string_view::npos ? weight : weight.substr(dot + 1);
  if (last == "weight" || last == "weight_ih") return std::string(path);
  constexpr std::string_view kGates = "weight_ih_";
  if (!last.starts_with(kGates)) return {};
  last.remove_prefix(kGates.size());
  return path.empty() ? std::string(last) : std::string(path) + "." + std::string(last);
}

bool is_layer(const std::string& op) {
  return std::find(kLayers.begin(), kLayers.end(), op) != kLayers.end();
}

/// An input's type may be unknown; a layer's result then has the type of its weights.
DType type_of(const Graph& graph, const Node& node, size_t output) {
  if (!node.domain.empty() && node.has_subgraph) return DType::kUnknown;
  const DType type = result_type(graph, node, output);
  if (type != DType::kUnknown || !is_layer(node.op)) return type;
  for (const ValueId input : node.inputs) {
    if (input == kNone || graph.value(input).dtype == DType::kUnknown) continue;
    return graph.value(input).dtype;
  }
  return type;
}

}  // namespace

Builder::Builder(Graph& graph, Sources& sources)
    : GraphBuilder(graph, sources.storage, kOpset),
      graph_(graph),
      sources_(sources),
      facts_(graph, sources.probe) {}

std::string Builder::name_for(const std::string& op, const std::vector<Operand>& inputs) const {
  if (!is_layer(op)) return {};
  for (const Operand& operand : inputs) {
    if (operand.value == kNone) continue;
    const Value& value = graph_.value(root(operand.value));
    if (value.weight == kNone) continue;
    std::string name = module_of(value.name);
    if (!name.empty() && !is_taken(name)) return name;
  }
  return {};
}

ValueId Builder::input(const std::string& name, DType dtype, const InputSpec& spec) {
  std::string free = name;
  for (int i = 2; is_taken(free); ++i) free = name + "_" + std::to_string(i);
  sources_.probe.inputs.push_back(spec);
  return GraphBuilder::input(free, dtype, spec.dims, std::vector<std::string>(spec.dims.size()));
}

ValueId Builder::declared(ValueId weight) {
  Value& value = graph_.value(weight);
  value.declared = graph_.weight(value.weight).dims;
  value.symbols.resize(value.declared->size());
  return weight;
}

ValueId Builder::weight(Weight weight) { return declared(GraphBuilder::weight(std::move(weight))); }

ValueId Builder::synthetic(const Shape& dims, double number) {
  const std::string name = unused_name();
  sources_.synthetic.insert(name);
  const std::vector<float> values(static_cast<size_t>(element_count(dims)),
                                  static_cast<float>(number));
  const auto bytes = std::as_bytes(std::span(values));
  return declared(tensor(name, DType::kFloat32, dims, {bytes.begin(), bytes.end()}));
}

ValueId Builder::constant(const HostTensor& tensor, std::vector<SourceLocation> locations) {
  HostTensor stored = tensor;
  if (tensor.dtype == DType::kBool) {
    for (int64_t& value : stored.ints) value = value != 0 ? 1 : 0;
  } else {
    stored.dtype = tensor.floating() ? DType::kFloat32 : DType::kInt64;
  }
  const ValueId id = declared(GraphBuilder::constant(stored));
  sources_.synthetic.insert(graph_.value(id).name);
  sources_.constants[id] = {std::move(locations)};
  return id;
}

ValueId Builder::number(double value) {
  return constant({.dtype = DType::kFloat32, .dims = {}, .ints = {}, .floats = {value}});
}

ValueId Builder::integer(int64_t value) { return constant(HostTensor::scalar(value)); }

ValueId Builder::cast(const Operand& x, DType type) {
  const ValueId result = emit("Cast", {x}, {{"to", int64_t{onnx_number(type)}}});
  graph_.value(result).dtype = type;
  return result;
}

ValueId Builder::integers(std::vector<int64_t> values, std::vector<SourceLocation> locations) {
  return constant(HostTensor::vector(std::move(values)), std::move(locations));
}

ValueId Builder::list_of(const std::vector<Element>& elements) {
  const bool fixed = std::all_of(elements.begin(), elements.end(),
                                 [](const Element& e) { return e.run_time == kNone; });
  if (fixed) {
    std::vector<int64_t> values;
    std::vector<SourceLocation> locations;
    for (const Element& element : elements) {
      values.push_back(element.fixed);
      locations.push_back(element.location);
    }
    return integers(std::move(values), std::move(locations));
  }
  std::vector<Operand> pieces;
  for (const Element& element : elements) {
    if (element.run_time == kNone) {
      pieces.push_back({integers({element.fixed}, {element.location})});
    } else {
      const ValueId piece = emit("Unsqueeze", {{element.run_time}, {integers({0})}});
      pieces.push_back({piece, element.location});
    }
  }
  return emit("Concat", pieces, {{"axis", int64_t{0}}});
}

std::vector<ValueId> Builder::emit_many(const std::string& op, const std::vector<Operand>& inputs,
                                        size_t outputs, Attributes attributes,
                                        const std::string& domain) {
  const auto id = graph_.nodes.next_id();
  std::vector<ValueId> operands;
  for (const Operand& operand : inputs) {
    operands.push_back(operand.value);
    sources_.operands[id].push_back(operand.location);
  }
  if (!attributes.locations.empty()) sources_.attributes[id] = std::move(attributes.locations);
  std::vector<ValueId> results = GraphBuilder::emit_many(
      op, std::move(operands), outputs, std::move(attributes.list), domain, name_for(op, inputs));
  Node& node = graph_.nodes.back();
  node.body = body_;
  for (size_t i = 0; i < outputs; ++i) {
    graph_.value(results[i]).dtype = type_of(graph_, node, i);
    producers_[results[i]] = id;
  }
  return results;
}

std::vector<ValueId> Builder::emit_opaque(const std::string& op, const std::vector<ValueId>& inputs,
                                          size_t outputs, bool has_subgraph) {
  std::vector<Operand> operands;
  for (const ValueId value : inputs) operands.push_back({value});
  // Nodes are identified by their output.
  std::vector<ValueId> results = emit_many(op, operands, std::max<size_t>(1, outputs), {}, "torch");
  graph_.nodes.back().has_subgraph = has_subgraph;
  // The node stays even if its results are unread.
  for (const ValueId value : results) graph_.value(value).captured = true;
  results.resize(outputs);
  return results;
}

BodyId Builder::body(const std::string& attribute) {
  const BodyId id = graph_.bodies.next_id();
  Body& body = graph_.bodies.emplace_back();
  body.attribute = attribute;
  body.around = body_;
  body_starts_.push_back(mark());
  return id;
}

ValueId Builder::body_input(ValueId like, std::optional<Shape> shape) {
  const ValueId id = value(unused_name(), graph_.value(like).dtype);
  graph_.value(id).declared = std::move(shape);
  alias(id, like);  // in the first iteration
  return id;
}

void Builder::finish_body(BodyId body, const std::vector<ValueId>& results) {
  begin("result");
  std::vector<ValueId> made;
  for (const ValueId result : results) {
    made.push_back(emit("Identity", {{result}}));
    alias(made.back(), result);
  }
  graph_.bodies[body].outputs = std::move(made);
}

std::vector<ValueId> Builder::emit_control(const std::string& op,
                                           const std::vector<ValueId>& inputs,
                                           const std::vector<BodyId>& bodies) {
  std::vector<Operand> operands;
  for (const ValueId value : inputs) operands.push_back({value});
  const std::vector<ValueId> made = graph_.bodies[bodies[0]].outputs;
  const size_t conditions = op == "Loop" ? 1 : 0;
  std::vector<ValueId> results = emit_many(op, operands, made.size() - conditions);
  graph_.nodes.back().has_subgraph = true;
  graph_.nodes.back().bodies = bodies;
  for (const BodyId b : bodies) {
    graph_.bodies[b].owner = graph_.nodes.id_of(graph_.nodes.back());
    for (const ValueId v : graph_.bodies[b].outputs) graph_.value(v).captured = true;
  }
  forget_facts(body_starts_[bodies[0]]);  // they depend on the owner's operands
  for (size_t i = 0; i < results.size(); ++i) {
    graph_.value(results[i]).dtype = graph_.value(made[i + conditions]).dtype;
    ValueId oldest = root(made[i + conditions]);
    for (const BodyId b : bodies) {
      oldest = std::min(oldest, root(graph_.bodies[b].outputs[i + conditions]));
    }
    alias(results[i], oldest);  // a block may return an outer value
  }
  return results;
}

void Builder::pin(const std::string& op, std::vector<ValueId> values) {
  if (values.empty()) return;
  sort_unique(values);
  const std::string base = begin(op);
  emit_opaque(op, values, 1, false);
  begin(base);
}

ValueId Builder::slice(const Operand& x, int64_t axis, ValueId starts, ValueId ends, int64_t step) {
  const ValueId axes = integers({axis});
  const ValueId steps = integers({step});
  return emit("Slice", {x, {starts}, {ends}, {axes}, {steps}});
}

void Builder::pin_axis(ValueId value, int64_t axis) {
  keep(emit("Gather", {{value}, {integer(0)}}, {{"axis", axis}}));
}

ValueId Builder::size_of_dim(ValueId value, int64_t dim) {
  const ValueId all = emit("Shape", {{value}});
  return emit("Gather", {{all}, {integer(dim)}}, {{"axis", int64_t{0}}});
}

const Node* Builder::producer(ValueId value) const {
  const auto found = producers_.find(value);
  return found == producers_.end() ? nullptr : &graph_.node(found->second);
}

void Builder::forget_facts(const Mark& from) {
  facts_.forget(NodeId(from.nodes), ValueId(from.values));
}

const Shape* Builder::shape(ValueId value) {
  if (graph_.value(value).weight != kNone) {
    return &graph_.weight_of(value).dims;
  }
  const auto& shape = facts_.about(value).shapes[value];
  return shape ? &*shape : nullptr;
}

const HostTensor* Builder::known(ValueId value) {
  const auto& constant = facts_.now().constants[value];
  return constant ? &*constant : nullptr;
}

void Builder::alias(ValueId view, ValueId base) {
  if (view != base) bases_[view] = root(base);
}

ValueId Builder::root(ValueId value) const {
  const auto base = bases_.find(value);
  return base == bases_.end() ? value : base->second;
}

void Builder::note_write(ValueId before, ValueId after) {
  if (graph_.value(before).weight != kNone) {
    written_[before] = after;
    return;
  }
  for (auto& [weight, now] : written_) {
    if (now == before) now = after;
  }
}

ValueId Builder::now(ValueId weight) const {
  const auto written = written_.find(weight);
  return written == written_.end() ? weight : written->second;
}

const Part* Builder::noted_part(ValueId value) const {
  const auto found = parts_.find(value);
  return found == parts_.end() ? nullptr : &found->second;
}

void Builder::finish_writes() {
  begin("written");
  for (const auto& [weight, now] : written_) {
    keep(written_over(*this, weight, now));
    auto& attributes = graph_.nodes.back().attributes;
    attributes.emplace_back("call", std::string("a write to a tensor of the module"));
    attributes.emplace_back("effect", std::string("writes"));
  }
}

Builder::Mark Builder::mark() const {
  return {graph_.nodes.size(),           graph_.values.size(),   graph_.weights.size(),
          sources_.size_literals.size(), sources_.frozen.size(), written_};
}

void Builder::roll_back(const Mark& mark) {
  forget_facts(mark);
  for (NodeId n(mark.nodes); graph_.nodes.has(n); ++n) {
    sources_.operands.erase(n);
    sources_.attributes.erase(n);
  }
  for (ValueId v(mark.values); graph_.values.has(v); ++v) {
    sources_.constants.erase(v);
    bases_.erase(v);
    parts_.erase(v);
    complex_.erase(v);
    producers_.erase(v);
    release(graph_.values[v].name);
  }
  graph_.nodes.resize(mark.nodes);
  graph_.values.resize(mark.values);
  graph_.weights.resize(mark.weights);
  sources_.size_literals.resize(mark.size_literals);
  sources_.frozen.resize(mark.frozen);
  std::erase_if(graph_.pinned_values,
                [&](const auto& pinned) { return !graph_.values.has(pinned.first); });
  std::erase_if(kept_, [&](ValueId v) { return !graph_.values.has(v); });
  written_ = mark.written;
}

// Removes unused values: sizes read only by checks, transposed weights that an operator uses
// directly.

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
    std::erase(body.inputs, ValueId());  // of a dropped operator
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

IdVector<ValueId, ValueId> Builder::compact() {
  const Live live = find_live(graph_, kept_);
  const IdVector<NodeId, NodeId> nodes = drop_dead(graph_.nodes, live.nodes);
  const IdVector<ValueId, ValueId> values = drop_dead(graph_.values, live.values);
  for (auto& [id, written] : sources_.constants) {
    if (written.start_of != kNone) written.start_of = values[written.start_of];
  }
  rekey(sources_.constants, values);
  rekey(sources_.operands, nodes);
  rekey(sources_.attributes, nodes);
  revalue(sources_.size_literals, values);
  revalue(sources_.frozen, values);
  renumber_values(graph_, values);
  drop_weights(graph_);
  bases_.clear();
  complex_.clear();
  return values;
}

}  // namespace parsimony::programs
