#include "parsimony/graph/operators/operands.h"

#include <algorithm>
#include <utility>

namespace parsimony {

bool is_weight(const Graph& graph, const Value& value) {
  if (value.weight == kNone) return false;
  const DType type = graph.weight(value.weight).dtype;
  if (is_floating(type) || is_small_integer(type)) return true;
  const bool wide = type == DType::kInt32 || type == DType::kInt16 || type == DType::kUInt16;
  return wide && !value.uses.empty() && std::ranges::all_of(value.uses, [&](const Use& use) {
           return has_trait(graph.node(use.node), kReadsIntegers);
         });
}

bool is_table(const Graph& graph, const Value& value) {
  if (value.weight == kNone || is_weight(graph, value)) return false;
  return size_of(graph.weight(value.weight).dtype) > 0;
}

int zero_point_of(const Node& node, int input) {
  const OpSchema& schema = schema_of(node);
  for (const IntegerOperand& integers : {schema.integers, schema.data}) {
    const bool there =
        integers.zero_point >= 0 && std::cmp_less(integers.zero_point, node.inputs.size());
    if (integers.operand == input && there && node.inputs[integers.zero_point] != kNone) {
      return integers.zero_point;
    }
  }
  return -1;
}

bool is_gain_of_statistics(const Node& node, ValueId value) {
  const Norm& norm = schema_of(node).norm;
  return norm.statistics >= 0 && std::ssize(node.inputs) > norm.gain &&
         node.inputs[norm.gain] == value;
}

bool is_statistic(const Node& node, int input) {
  const int first = schema_of(node).norm.statistics;
  return first >= 0 && input >= first;
}

IdVector<ValueId, bool> made_of_weights(const Graph& graph, const IdVector<ValueId, bool>& also) {
  IdVector<ValueId, bool> made(graph.values.size(), false);
  for (const ValueId v : made.ids()) {
    made[v] = graph.values[v].weight != kNone || (!also.empty() && also[v]);
  }
  const auto is_made = [&](ValueId v) { return v == kNone || made[v]; };
  for (const Node& node : graph.nodes) {
    // A branch may return a value that is not a weight; split positions may depend on sizes.
    if (node.inputs.empty() || node.has_subgraph || !is_made(node.inputs[0])) continue;
    const auto end = has_trait(node, kTakesApart) ? node.inputs.begin() + 1 : node.inputs.end();
    if (!std::all_of(node.inputs.begin(), end, is_made)) continue;
    for (const ValueId out : node.outputs) {
      if (out != kNone) made[out] = true;
    }
  }
  return made;
}

}  // namespace parsimony
