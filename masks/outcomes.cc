#include <algorithm>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/masks/outcomes_impl.h"

namespace parsimony {
namespace {

/// The weights of the group, and what is made of them alone: a view of the bins' positions.
std::vector<ValueId> positions_of(const Graph& graph, const DimClasses& dim_classes,
                                  const Group& group) {
  std::vector<ValueId> found;
  for (const Member& member : group.members) {
    if (!contains(found, member.value)) found.push_back(member.value);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Use& use : graph.value(found[i]).uses) {
      for (const ValueId output : graph.node(use.node).outputs) {
        const bool made = output != kNone && dim_classes.from_weights(output);
        if (made && !contains(found, output)) found.push_back(output);
      }
    }
  }
  return found;
}

}  // namespace

NodeId reader_of_outcomes(const Graph& graph, const DimClasses& dim_classes, const Group& group,
                          NodeId softmax) {
  const std::vector<ValueId> positions = positions_of(graph, dim_classes, group);
  std::vector<NodeId> reached = {softmax};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const ValueId output : graph.node(reached[i]).outputs) {
      if (output == kNone) continue;
      for (const Use& use : graph.value(output).uses) {
        const auto weighs = [&](ValueId v) { return v != kNone && contains(positions, v); };
        if (std::ranges::any_of(graph.node(use.node).inputs, weighs)) return use.node;
        const bool passes = use.input == 0 && has_trait(graph.node(use.node), kHomogeneous);
        if (passes && !contains(reached, use.node)) reached.push_back(use.node);
      }
    }
  }
  return kNone;
}

}  // namespace parsimony
