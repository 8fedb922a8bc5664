#include "parsimony/pruners/quantised.h"

#include <cmath>

#include "parsimony/graph/errors.h"

namespace parsimony {

namespace {

constexpr int64_t kDefaultAxis = 1;  // of DequantizeLinear

const Weight* constant_input(const Graph& graph, const Node& node, size_t input) {
  if (input >= node.inputs.size() || node.inputs[input] == kNone) return nullptr;
  const WeightId id = graph.value(node.inputs[input]).weight;
  return id == kNone ? nullptr : &graph.weight(id);
}

std::vector<double> numbers(const Weight& weight) {
  const HostTensor tensor = to_host(weight);
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (!std::isfinite(tensor.number(i))) throw errors::nan_weight(weight.name, i);
    result.push_back(tensor.number(i));
  }
  return result;
}

/// Elements behind one step along the node's axis; 0 if there is no such axis.
int64_t inner_size(const Node& node, const Shape& dims) {
  int64_t axis = kDefaultAxis;
  for (const auto& [name, value] : node.attributes) {
    const auto* number = std::get_if<int64_t>(&value);
    if (name == "axis" && number != nullptr) axis = *number;
  }
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return 0;
  int64_t inner = 1;
  for (int64_t i = axis + 1; i < rank; ++i) inner *= dims[static_cast<size_t>(i)];
  return inner;
}

}  // namespace

std::optional<Quantised> quantised(const Graph& graph, const Node& reader, const Weight& weight) {
  if (reader.op != "DequantizeLinear" || is_floating(weight.dtype)) return std::nullopt;
  const Weight* scale = constant_input(graph, reader, 1);
  if (scale == nullptr || scale->dims.size() > 1 || scale->count() < 1) return std::nullopt;
  Quantised result;
  result.scale = numbers(*scale);
  result.zero_point.assign(result.scale.size(), 0);
  if (const Weight* zero = constant_input(graph, reader, 2); zero != nullptr) {
    if (zero->count() != scale->count()) return std::nullopt;
    result.zero_point = numbers(*zero);
  }
  if (result.scale.size() > 1) result.inner = inner_size(reader, weight.dims);
  if (result.inner < 1) return std::nullopt;
  return result;
}

}  // namespace parsimony
