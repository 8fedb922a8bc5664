#include "parsimony/speedup/small_sizes.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <string>

#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

/// Calls `visit` for each operand of a regular operator, which is data, that is computed from sizes
/// and has a fraction.
template <class Visit>
void for_each_number(const Graph& graph, const Facts& facts, Visit visit) {
  for (const Node& node : graph.nodes) {
    const OpSchema* schema = followed_schema(node);
    if (schema == nullptr || schema->line.empty() || node.outputs.empty()) continue;
    if (node.outputs[0] == kNone || facts.computed[node.outputs[0]]) continue;
    for (int i = 0; i < std::ssize(node.inputs); ++i) {
      const ValueId value = node.inputs[i];
      if (value == kNone || !facts.computed[value]) continue;
      const auto& number = facts.constants[value];
      if (number && number->floating()) visit(node, i, *number);
    }
  }
}

}  // namespace

std::vector<PlanInteger> numbers_of_small_sizes(const Graph& original, const Plan& plan) {
  std::vector<PlanInteger> found;
  absl::flat_hash_map<ValueId, HostTensor> before;
  const Facts facts = infer_with_choice(original).facts;
  for_each_number(original, facts, [&](const Node& node, int input, const HostTensor& number) {
    before.emplace(node.inputs[input], number);
  });
  if (before.empty()) return found;
  GraphEditor editor(original);
  replay(plan, editor);
  const Graph& small = editor.graph();
  const Facts after = infer_with_choice(small).facts;
  for_each_number(small, after, [&](const Node& node, int input, const HostTensor& number) {
    const auto was = before.find(node.inputs[input]);  // values keep their ids
    if (was == before.end() || was->second == number) return;
    found.push_back(
        {key_of(small, node), "operand " + std::to_string(input), input, was->second, number});
  });
  return found;
}

}  // namespace parsimony
