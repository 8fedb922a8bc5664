#include "parsimony/pruners/elements/contraction.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/linear_form.h"

namespace parsimony::elements {

namespace {

/// Bounds the way from an operand to its weight; real ones are one or two nodes long.
constexpr int kMaxSteps = 8;

/// Of each dimension of a Transpose's output, the dimension of its input.
std::vector<int> permutation(const Node& node, size_t rank) {
  std::vector<int> result(rank);
  std::iota(result.rbegin(), result.rend(), 0);
  const std::vector<int64_t> list = attrs(node, "perm");
  for (size_t i = 0; i < rank && list.size() == rank; ++i) {
    result[i] = static_cast<int>(list[i] + (list[i] < 0 ? static_cast<int64_t>(rank) : 0));
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
    if (has_trait(node, kPermutes)) {
      const std::vector<int> from = permutation(node, rank);
      for (int& axis : axes) axis = from[static_cast<size_t>(axis)];
    } else if (!has_trait(node, kCopies)) {
      return {};
    }
    operand = node.inputs.empty() ? kNone : node.inputs[0];
  }
  return {};
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
  const auto form = linear_form(node, operand, static_cast<size_t>(rank));
  if (!form) return std::nullopt;
  const bool transposed = form->kind == LinearKind::kTransposedConvolution;
  if (transposed && form->groups != 1) return std::nullopt;
  const std::vector<int> axes = axes_of(graph, node.inputs[static_cast<size_t>(operand)], weight);
  const auto of_weight = [&](int axis) { return axes[static_cast<size_t>(axis)]; };
  Contraction result{.input = of_weight(form->in_axis), .groups = form->groups};
  auto& kernel = result.kernel;
  if (!transposed) std::ranges::transform(form->kernel, std::back_inserter(kernel), of_weight);
  for (int axis = 0; axis < rank; ++axis) {
    const bool summed = axis == result.input || contains(kernel, axis);
    if (!summed) result.outputs.push_back(axis);
  }
  return result;
}

std::optional<Contraction> common_contraction(const Graph& graph, const ElementTask& task) {
  std::optional<Contraction> common;
  for (const Reader& reader : task.readers) {
    const auto one = contraction_of(graph, reader.layer, reader.value);
    if (!one || (common && *one != *common)) return std::nullopt;
    common = one;
  }
  return common;
}

}  // namespace parsimony::elements
