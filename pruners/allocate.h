// From scores and settings to masks: how many channels of each group go, and which.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/follow.h"
#include "parsimony/pruners/settings.h"
#include "parsimony/pruners/worth.h"

namespace parsimony {

struct Allocation {
  AxisMasks masks;
  std::vector<Compromise> compromises;
  int given_back = 0;  ///< channels that returned because a dimension would have been empty
};

/// An allocator of the user's own: how many channels each candidate loses, its lowest ones, for one
/// budget; `request` is the first that shares it. What the candidates' limits do not allow is
/// brought within them.
using ChooseFunction =
    std::function<std::vector<int>(const Request& request, std::span<const Candidate> candidates)>;

/// Prunes every group as its layers ask; a group follows its most careful layer (see follow.h),
/// groups that are tied lose the same channels (see units.h), and counts come from the budget (see
/// budget.h). Shares of the parameters or MACs are measured for each request as if it were the only
/// one; an amount of them is what the whole network has in the end. Requests that share a budget
/// are ranked together, each within its own bounds. Requests that judge single elements are left to
/// prune_elements(), and groups with a budget of milliseconds whole, for spend_latency().
///
/// `worth` is asked for every candidate of a budget that is spread by what the outputs lose; one
/// that it knows nothing of is ranked last.
///
/// Of channels, a higher ratio removes a superset. Channels that keep_at_least_one gives back are
/// not replaced, but count for a budget of parameters or MACs.
///
///     Settings settings = resolve(read_config("l1.json"), graph);
///     Allocation found = allocate(graph, facts, coupling, settings, {.seed = 1});
///
/// @throws ModelError if a weight that is scored has a NaN, ConfigError if tied layers are not
/// alike or blocks do not divide a group
Allocation allocate(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const Settings& settings, const CriterionOptions& options,
                    const ChooseFunction& choose = {}, const WorthFunction& worth = {});

}  // namespace parsimony
