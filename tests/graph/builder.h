// Graphs by hand, for tests.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony::test {

using Attributes = std::vector<std::pair<std::string, Attribute>>;

/// Owns the memory of the weights, hence neither copied nor moved.
class Builder {
 public:
  Builder() = default;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Graph graph;

  ValueId value(const std::string& name) { return graph.values.push_back({.name = name}); }

  ValueId input(const std::string& name, Shape dims, DType dtype = DType::kFloat32) {
    const ValueId id = value(name);
    graph.value(id).declared = std::move(dims);
    graph.value(id).dtype = dtype;
    graph.inputs.push_back(id);
    return id;
  }

  template <typename T>
  ValueId weight(const std::string& name, const std::vector<T>& elements, Shape dims, DType dtype) {
    const auto all = std::as_bytes(std::span(elements));
    const std::vector<std::byte>& bytes = memory_.emplace_back(all.begin(), all.end());
    const ValueId id = value(name);
    graph.value(id).dtype = dtype;
    graph.value(id).weight =
        graph.weights.push_back({name, dtype, std::move(dims), bytes.data(), sizeof(T)});
    return id;
  }

  ValueId floats(const std::string& name, Shape dims) {
    const size_t count = element_count(dims);
    return weight(name, std::vector<float>(count, 1.0F), std::move(dims), DType::kFloat32);
  }

  /// A node of one output, "<name>" likewise the name of the node.
  ValueId node(const std::string& op, const std::vector<ValueId>& inputs, const std::string& name,
               Attributes attributes = {}) {
    const ValueId output = value(name);
    add(op, inputs, {output}, std::move(attributes)).name = name;
    return output;
  }

  Node& add(const std::string& op, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
            Attributes attributes = {}) {
    Node& node = graph.nodes.emplace_back();
    node.op = op;
    node.opset = 17;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    return node;
  }

  void output(ValueId id) { graph.outputs.push_back(id); }

 private:
  std::deque<std::vector<std::byte>> memory_;
};

/// Facts that know nothing.
inline Facts no_facts(const Graph& graph) {
  Facts facts;
  facts.shapes.resize(graph.values.size());
  facts.constants.resize(graph.values.size());
  facts.computed.resize(graph.values.size());
  return facts;
}

}  // namespace parsimony::test
