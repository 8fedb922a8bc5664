#include "parsimony/graph/graph_builder.h"

#include "parsimony/graph/element_type_impl.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

std::string GraphBuilder::unused_name() {
  for (;;) {
    std::string name = base_ + separator_ + std::to_string(counters_[base_]++);
    if (!is_taken(name)) return name;
  }
}

void GraphBuilder::rename(ValueId value, const std::string& name) {
  if (graph_.value(value).name == name) return;
  names_.erase(graph_.value(value).name);
  if (const auto other = names_.find(name); other != names_.end() && other->second != kNone) {
    const ValueId displaced = other->second;
    graph_.value(displaced).name = unused_name();
    names_[graph_.value(displaced).name] = displaced;
  }
  graph_.value(value).name = name;
  names_[name] = value;
}

ValueId GraphBuilder::value(const std::string& name, DType dtype) {
  const ValueId id = graph_.values.push_back({.name = name, .dtype = dtype});
  names_[name] = id;
  return id;
}

ValueId GraphBuilder::input(const std::string& name, DType dtype, std::optional<Shape> declared,
                            std::vector<std::string> symbols) {
  const ValueId id = value(name, dtype);
  Value& made = graph_.value(id);
  made.declared = std::move(declared);
  made.symbols = std::move(symbols);
  made.is_input = true;
  graph_.inputs.push_back(id);
  return id;
}

ValueId GraphBuilder::weight(Weight weight) {
  const ValueId id = value(weight.name, weight.dtype);
  graph_.value(id).weight = graph_.weights.push_back(std::move(weight));
  return id;
}

ValueId GraphBuilder::tensor(const std::string& name, DType dtype, Shape dims,
                             std::vector<std::byte> bytes) {
  const std::vector<std::byte>& held = memory_.emplace_back(std::move(bytes));
  return weight({name, dtype, std::move(dims), held.data(), size_of(dtype)});
}

ValueId GraphBuilder::constant(const HostTensor& tensor) {
  return this->tensor(unused_name(), tensor.dtype, tensor.dims, to_bytes(tensor));
}

std::vector<ValueId> GraphBuilder::emit_many(const std::string& op, std::vector<ValueId> inputs,
                                             size_t outputs, NodeAttributes attributes,
                                             const std::string& domain, const std::string& name) {
  Node node;
  node.op = op;
  node.domain = domain;
  node.opset = domain.empty() ? opset_ : 1;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  for (size_t i = 0; i < outputs; ++i) {
    node.outputs.push_back(value(i == 0 && !name.empty() ? name : unused_name()));
  }
  node.name = graph_.value(node.outputs.front()).name;
  for (size_t i = 0; i < outputs; ++i) {
    graph_.value(node.outputs[i]).dtype = result_type(graph_, node, i);
  }
  std::vector<ValueId> results = node.outputs;
  graph_.nodes.push_back(std::move(node));
  return results;
}

void own_literals(Graph& graph, TensorMemory& memory) {
  for (Weight& weight : graph.weights) {
    if (!is_literal(weight.dtype, weight.count())) continue;
    const size_t bytes = weight.count() * weight.stride;
    if (bytes == 0) continue;
    weight.data = memory.emplace_back(weight.data, weight.data + bytes).data();
  }
}

}  // namespace parsimony
