#include <algorithm>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/masks/outcomes_impl.h"

namespace parsimony {

NodeId reader_of_outcomes(const Graph& graph, const Group& group, NodeId softmax) {
  std::vector<NodeId> reached = {softmax};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const ValueId output : graph.node(reached[i]).outputs) {
      if (output == kNone) continue;
      for (const Use& use : graph.value(output).uses) {
        const auto weighs = [&](const Member& member) { return member.node == use.node; };
        if (std::ranges::any_of(group.members, weighs)) return use.node;
        const bool passes = use.input == 0 && has_trait(graph.node(use.node), kHomogeneous);
        if (passes && !contains(reached, use.node)) reached.push_back(use.node);
      }
    }
  }
  return kNone;
}

}  // namespace parsimony
