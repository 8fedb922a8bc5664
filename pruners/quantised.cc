#include "parsimony/pruners/quantised.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/linear_form.h"

namespace parsimony {

namespace {

const Weight* constant_input(const Graph& graph, const Node& node, int input) {
  if (input < 0 || input >= std::ssize(node.inputs)) return nullptr;
  const ValueId value = node.inputs[static_cast<size_t>(input)];
  const WeightId id = value == kNone ? kNone : graph.value(value).weight;
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

/// Elements per step along the axis of the scales; 0 if there is no such axis.
int64_t inner_size(const Node& node, const IntegerOperand& integers, const Shape& dims) {
  const int vector = integers.scale >= 0 ? integers.scale : integers.zero_point;
  const auto axis = axis_along(node, integers.operand, vector, dims.size());
  if (!axis) return 0;
  const auto behind = dims.begin() + *axis + 1;
  return std::accumulate(behind, dims.end(), int64_t{1}, std::multiplies<>());
}

/// The numbers of a constant of rank 0 or 1; `absent` where there is no such operand.
std::optional<std::vector<double>> vector_of(const Graph& graph, const Node& node, int input,
                                             double absent) {
  const bool there = input >= 0 && input < std::ssize(node.inputs) &&
                     node.inputs[static_cast<size_t>(input)] != kNone;
  if (!there) return std::vector<double>{absent};
  const Weight* found = constant_input(graph, node, input);
  if (found == nullptr || found->dims.size() > 1 || found->count() < 1) return std::nullopt;
  return numbers(*found);
}

}  // namespace

std::optional<Quantised> quantised(const Graph& graph, const Node& reader, const Weight& weight) {
  if (is_floating(weight.dtype)) return std::nullopt;
  const IntegerOperand& integers = schema_of(reader).integers;
  if (constant_input(graph, reader, integers.operand) != &weight) return std::nullopt;
  auto scale = vector_of(graph, reader, integers.scale, 1);
  auto zero = vector_of(graph, reader, integers.zero_point, 0);
  if (!scale || !zero) return std::nullopt;
  const size_t count = std::max(scale->size(), zero->size());
  for (auto* list : {&*scale, &*zero}) {
    if (list->size() == 1) list->resize(count, list->front());
    if (list->size() != count) return std::nullopt;
  }
  Quantised result{1, std::move(*scale), std::move(*zero)};
  if (count > 1) result.inner = inner_size(reader, integers, weight.dims);
  if (result.inner < 1) return std::nullopt;
  return result;
}

}  // namespace parsimony
