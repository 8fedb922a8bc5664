#include "parsimony/graph/graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/element_type_impl.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/weights.h"

namespace parsimony {
namespace {

/// Elements of a file need not be aligned, hence the memcpy.
template <typename Number>
std::vector<Number> read(const Weight& weight) {
  return with_element_type(weight.dtype, [&](auto element) {
    std::vector<Number> numbers(weight.count());
    const std::byte* from = weight.data;
    for (Number& number : numbers) {
      std::memcpy(&element, from, sizeof element);
      number = static_cast<Number>(element);
      from += weight.stride;
    }
    return numbers;
  });
}

}  // namespace

HostTensor HostTensor::scalar(int64_t value, DType dtype) {
  HostTensor tensor = vector({value}, dtype);
  tensor.dims.clear();
  return tensor;
}

HostTensor HostTensor::of(double number, DType dtype) {
  if (!is_floating(dtype)) return scalar(static_cast<int64_t>(number), dtype);
  return {dtype, {}, {}, {number}};
}

HostTensor HostTensor::vector(std::vector<int64_t> values, DType dtype) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = {static_cast<int64_t>(values.size())};
  if (is_floating(dtype)) {
    tensor.floats.assign(values.begin(), values.end());
  } else {
    tensor.ints = std::move(values);
  }
  return tensor;
}

std::vector<std::byte> to_bytes(const HostTensor& tensor) {
  const size_t width = size_of(tensor.dtype);
  std::vector<std::byte> bytes(tensor.count() * width);
  for (size_t i = 0; i < tensor.ints.size(); ++i) {
    std::memcpy(bytes.data() + i * width, &tensor.ints[i], width);  // the lowest bytes come first
  }
  for (size_t i = 0; i < tensor.floats.size(); ++i) {
    write_number(tensor.floats[i], tensor.dtype, bytes.data() + i * width);
  }
  return bytes;
}

HostTensor to_host(const Weight& weight) {
  if (size_of(weight.dtype) == 0) {
    throw errors::not_numbers(weight.name, name_of(weight.dtype));
  }
  HostTensor tensor;
  tensor.dtype = weight.dtype;
  tensor.dims = weight.dims;
  if (tensor.floating()) {
    tensor.floats = read<double>(weight);
  } else {
    tensor.ints = read<int64_t>(weight);
  }
  return tensor;
}

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

std::string module_of_node_name(std::string_view name) {
  if (!name.starts_with('/')) return {};
  std::string path;
  std::string_view last;  // "layer1" is repeated within "layer1.0": a container has no call
  while (true) {
    name.remove_prefix(1);
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos) return path;
    const std::string_view part = name.substr(0, slash);
    const bool repeats = !last.empty() && part.starts_with(last) && part.size() > last.size() &&
                         part[last.size()] == '.';
    if (!repeats && !path.empty()) path += '.';
    path += repeats ? part.substr(last.size()) : part;
    last = part;
    name.remove_prefix(slash);
  }
}

// Equal constants that an exporter merged, mostly zero biases, would couple unrelated layers. In
// densenet121 un-sharing them turns 31 groups into 120.
//
//   bn1(x, w, zeros), bn2(y, v, zeros)   =>   bn1(x, w, zeros'), bn2(y, v, zeros'')
//
// Matrices stay tied, since their sharing is intended, and so do uses by irregular operators: gate
// biases behind a Slice would be separated.
namespace {

bool is_vector(const Shape& dims) {
  const auto longer = [](int64_t dim) { return dim > 1; };
  const auto empty = [](int64_t dim) { return dim < 1; };
  return std::ranges::none_of(dims, empty) && std::ranges::count_if(dims, longer) == 1;
}

bool is_regular(const Graph& graph, const Use& use) {
  const Node& node = graph.node(use.node);
  if (node.calls > 0) return false;  // its operands are those of the call
  return !schema_of(node).line.empty();
}

bool reads_its_elements(const Graph& graph, const Use& use) {
  return reads_elements(graph.node(use.node), use.input);
}

void separate(Graph& graph, ValueId id) {
  const std::vector<Use> uses = graph.value(id).uses;
  std::vector<Use> regular;
  std::vector<Use> irregular;
  std::vector<Use> of_sizes;  // these stay with the original
  for (const Use& use : uses) {
    std::vector<Use>& kind = !reads_its_elements(graph, use) ? of_sizes
                             : is_regular(graph, use)        ? regular
                                                             : irregular;
    kind.push_back(use);
  }
  if (regular.empty()) return;

  bool original_is_free =
      irregular.empty() && !graph.value(id).is_output && !graph.value(id).captured;
  graph.value(id).uses = std::move(irregular);
  for (const Use& use : regular) {
    if (original_is_free) {
      original_is_free = false;
      graph.value(id).shared_copy = true;
      graph.value(id).uses = {use};
      continue;
    }
    Value copy = graph.value(id);
    copy.is_output = false;
    copy.captured = false;
    copy.shared_copy = true;
    copy.uses = {use};
    graph.nodes[use.node].inputs[use.input] = graph.values.push_back(std::move(copy));
  }
  std::ranges::copy(of_sizes, std::back_inserter(graph.value(id).uses));
}

}  // namespace

void separate_shared_vectors(Graph& graph) {
  // Counted per weight: several values may show the same one, for instance behind an Identity.
  IdVector<WeightId, std::ptrdiff_t> uses(graph.weights.size(), 0);
  for (const Value& value : graph.values) {
    if (value.weight == kNone) continue;
    uses[value.weight] += std::ranges::count_if(
        value.uses, [&](const Use& use) { return reads_its_elements(graph, use); });
  }
  for (const ValueId v : graph.values.ids()) {  // existing ones; copies need not be checked
    const WeightId id = graph.value(v).weight;
    if (id == kNone || uses[id] < 2) continue;
    const Weight& weight = graph.weight(id);
    const auto writes = [&](const Use& use) {
      return find_attribute(graph.node(use.node), "effect") != nullptr;
    };
    const auto& value = graph.value(v);
    if (std::ranges::any_of(value.uses, writes)) continue;  // what is written is what is read
    if (is_vector(weight.dims) && is_weight(graph, value)) separate(graph, v);
  }
}

}  // namespace parsimony
