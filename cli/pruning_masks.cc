#include "parsimony/cli/pruning_masks.h"

#include <algorithm>

namespace parsimony::cli {

std::vector<ElementMask> pruning_masks(const Graph& graph, const Pruning& pruning) {
  if (pruning.plan.constants == Constants::kExact) {
    std::vector<ElementMask> masks;
    for (const PlanMask& mask : pruning.plan.masks) {
      masks.push_back({mask.tensor, mask.dims, mask.keep});
    }
    return masks;
  }
  auto masks = to_element_masks(graph, pruning.analysis.coupling, pruning.allocation.masks);
  for (const ElementMask& mask : pruning.element_masks) {
    const auto same = [&](const ElementMask& other) { return other.tensor == mask.tensor; };
    const auto it = std::find_if(masks.begin(), masks.end(), same);
    if (it == masks.end()) {
      masks.push_back(mask);
      continue;
    }
    for (size_t i = 0; i < mask.keep.size(); ++i) it->keep[i] &= mask.keep[i];
  }
  return masks;
}

}  // namespace parsimony::cli
