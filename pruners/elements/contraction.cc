#include "parsimony/pruners/elements/contraction.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace parsimony::elements {

namespace {

/// Bounds the way from an operand to its weight; real ones are one or two nodes long.
constexpr int kMaxSteps = 8;

int64_t integer(const Node& node, std::string_view name, int64_t otherwise) {
  for (const auto& [key, value] : node.attributes) {
    const auto* number = std::get_if<int64_t>(&value);
    if (key == name && number != nullptr) return *number;
  }
  return otherwise;
}

/// Of each dimension of a Transpose's output, the dimension of its input.
std::vector<int> permutation(const Node& node, size_t rank) {
  std::vector<int> result(rank);
  std::iota(result.rbegin(), result.rend(), 0);
  for (const auto& [key, value] : node.attributes) {
    const auto* list = std::get_if<std::vector<int64_t>>(&value);
    if (key != "perm" || list == nullptr || list->size() != rank) continue;
    for (size_t i = 0; i < rank; ++i) {
      result[i] = static_cast<int>((*list)[i] + ((*list)[i] < 0 ? static_cast<int64_t>(rank) : 0));
    }
  }
  return result;
}

/// Of each dimension of the operand, the dimension of the weight; empty if the operand is not the
/// weight with its axes in some order.
std::vector<int> axes_of(const Graph& graph, ValueId operand, ValueId weight) {
  const size_t rank = graph.weight(graph.value(weight).weight).dims.size();
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  for (int step = 0; step < kMaxSteps && operand != kNone; ++step) {
    if (operand == weight) return axes;
    const NodeId producer = graph.value(operand).producer;
    if (producer == kNone) return {};
    const Node& node = graph.node(producer);
    if (node.op == "Transpose") {
      const std::vector<int> from = permutation(node, rank);
      for (int& axis : axes) axis = from[static_cast<size_t>(axis)];
    } else if (node.op != "Identity" && node.op != "Cast") {
      return {};
    }
    operand = node.inputs.empty() ? kNone : node.inputs[0];
  }
  return {};
}

/// In terms of the operand's own dimensions.
std::optional<Contraction> of_operand(const Node& node, int input, int rank) {
  Contraction result;
  if (node.op == "Conv") {
    result.input = 1;
    result.groups = integer(node, "group", 1);
    for (int axis = 2; axis < rank; ++axis) result.kernel.push_back(axis);
  } else if (node.op == "ConvTranspose") {
    if (integer(node, "group", 1) != 1) return std::nullopt;
    result.input = 0;
  } else if (node.op == "Gemm") {
    const bool turned = integer(node, input == 0 ? "transA" : "transB", 0) != 0;
    result.input = (input == 0) != turned ? 1 : 0;
  } else if (node.op == "MatMul") {
    result.input = input == 0 ? rank - 1 : rank - 2;
  } else if (node.op != "Gather" && node.op != "Einsum") {
    result.input = rank - 1;  // recurrent layers
  } else {
    return std::nullopt;
  }
  return result;
}

}  // namespace

int operand_of(const Graph& graph, NodeId layer, ValueId weight) {
  const Node& node = graph.node(layer);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!axes_of(graph, node.inputs[i], weight).empty()) return static_cast<int>(i);
  }
  return kNone;
}

std::optional<Contraction> contraction_of(const Graph& graph, NodeId layer, ValueId weight) {
  const int operand = operand_of(graph, layer, weight);
  if (operand == kNone) return std::nullopt;
  const Node& node = graph.node(layer);
  const int rank = static_cast<int>(graph.weight(graph.value(weight).weight).dims.size());
  auto result = of_operand(node, operand, rank);
  if (!result) return std::nullopt;
  const std::vector<int> axes = axes_of(graph, node.inputs[static_cast<size_t>(operand)], weight);
  const auto of_weight = [&](int axis) { return axes[static_cast<size_t>(axis)]; };
  auto& kernel = result->kernel;
  result->input = of_weight(result->input);
  std::transform(kernel.begin(), kernel.end(), kernel.begin(), of_weight);
  for (int axis = 0; axis < rank; ++axis) {
    const bool summed =
        axis == result->input || std::find(kernel.begin(), kernel.end(), axis) != kernel.end();
    if (!summed) result->outputs.push_back(axis);
  }
  return result;
}

std::optional<Contraction> common_contraction(const Graph& graph, const Order& order) {
  std::optional<Contraction> common;
  for (const Reader& reader : order.readers) {
    const auto one = contraction_of(graph, reader.layer, reader.value);
    if (!one || (common && *one != *common)) return std::nullopt;
    common = one;
  }
  return common;
}

}  // namespace parsimony::elements
