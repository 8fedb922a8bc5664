// From scores and settings to masks: how many channels of each group go, and which.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/follow.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

struct Allocation {
  AxisMasks masks;
  std::vector<Compromise> compromises;
  int given_back = 0;  ///< channels that returned because a dimension would have been empty
};

/// Prunes every group as its layers ask; a group follows its most careful layer (see follow.h), and
/// counts come from the budget (see budget.h). Parameters and MACs are shares of the whole
/// network's, measured for each request as if it were the only one. Requests that judge single
/// elements are left to prune_elements().
///
/// A higher ratio removes a superset. Channels that keep_at_least_one gives back are not replaced.
///
///     Settings settings = resolve(read_config("l1.json"), graph);
///     Allocation found = allocate(graph, facts, coupling, settings, {.seed = 1});
///
/// @throws ModelError if a weight that is scored has a NaN
Allocation allocate(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const Settings& settings, const CriterionOptions& options);

}  // namespace parsimony
