#include "parsimony/pruners/quantised.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "parsimony/graph/errors.h"

namespace parsimony {

namespace {

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

/// How an operator reads a quantised weight: which operands are the weight, its scales and its zero
/// points, and along which axis those lie. Without scales: they multiply the sums later on.
struct Reading {
  std::string_view op;
  size_t weight;
  std::optional<size_t> scale;
  size_t zero;
  int64_t axis;
};

constexpr std::array<Reading, 8> kReadings = {{{"ConvInteger", 1, std::nullopt, 3, 0},
                                               {"DequantizeLinear", 0, 1, 2, 1},
                                               {"DynamicQuantizeMatMul", 1, 2, 3, -1},
                                               {"MatMulInteger", 1, std::nullopt, 3, -1},
                                               {"MatMulIntegerToFloat", 1, 3, 5, -1},
                                               {"QGemm", 3, 4, 5, -1},
                                               {"QLinearConv", 3, 4, 5, 0},
                                               {"QLinearMatMul", 3, 4, 5, -1}}};

const Reading* reading_of(const Graph& graph, const Node& node, const Weight& weight) {
  for (const Reading& row : kReadings) {
    if (row.op == node.op && constant_input(graph, node, row.weight) == &weight) return &row;
  }
  return nullptr;
}

/// Elements behind one step along the node's axis; 0 if there is no such axis.
int64_t inner_size(const Node& node, const Reading& reading, const Shape& dims) {
  int64_t axis = reading.axis;
  for (const auto& [name, value] : node.attributes) {
    const auto* number = std::get_if<int64_t>(&value);
    if (name == "axis" && number != nullptr) axis = *number;
    if (name == "transB" && number != nullptr && *number != 0) axis = 0;
  }
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return 0;
  int64_t inner = 1;
  for (int64_t i = axis + 1; i < rank; ++i) inner *= dims[static_cast<size_t>(i)];
  return inner;
}

/// The numbers of a constant of rank 0 or 1; `absent` where there is no such operand.
std::optional<std::vector<double>> vector_of(const Graph& graph, const Node& node,
                                             std::optional<size_t> input, double absent) {
  if (!input || *input >= node.inputs.size() || node.inputs[*input] == kNone) {
    return std::vector<double>{absent};
  }
  const Weight* found = constant_input(graph, node, *input);
  if (found == nullptr || found->dims.size() > 1 || found->count() < 1) return std::nullopt;
  return numbers(*found);
}

}  // namespace

std::optional<Quantised> quantised(const Graph& graph, const Node& reader, const Weight& weight) {
  if (is_floating(weight.dtype)) return std::nullopt;
  const Reading* reading = reading_of(graph, reader, weight);
  if (reading == nullptr) return std::nullopt;
  auto scale = vector_of(graph, reader, reading->scale, 1);
  auto zero = vector_of(graph, reader, reading->zero, 0);
  if (!scale || !zero) return std::nullopt;
  const size_t count = std::max(scale->size(), zero->size());
  for (auto* list : {&*scale, &*zero}) {
    if (list->size() == 1) list->resize(count, list->front());
    if (list->size() != count) return std::nullopt;
  }
  Quantised result{1, std::move(*scale), std::move(*zero)};
  if (count > 1) result.inner = inner_size(reader, *reading, weight.dims);
  if (result.inner < 1) return std::nullopt;
  return result;
}

}  // namespace parsimony
