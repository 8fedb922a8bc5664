// From scores and settings to masks: how many channels of each group are removed, and which.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

struct Allocation {
  AxisMasks masks;
  std::vector<Conflict> conflicts;
  /// Per group and channel, what ranked it within its budget; empty for groups that none covers.
  PerGroup<std::vector<double>> scores;
  /// Channels that were kept after all because a dimension would have been empty.
  int given_back = 0;
};

/// A custom allocator: how many channels each candidate loses (its lowest-scoring ones) for one
/// budget; `request` is the first that shares it. Counts are clamped to the candidates' limits.
using ChooseFunction =
    std::function<std::vector<int>(const Request& request, std::span<const Candidate> candidates)>;

/// Prunes every group as its layers request; a group follows its most conservative layer, tied
/// groups lose the same channels (see units.h), and counts come from the budget (see budget.h).
/// Shares of the parameters or MACs are measured for each request as if it were the only one; an
/// amount is what the whole network has in the end. Requests that share a budget are ranked
/// together, each within its own bounds. Requests that score single elements are left to
/// prune_elements(), and groups with a latency budget to spend_latency().
///
/// `importance` is called for every candidate of a budget with scope "outputs"; candidates without
/// a curve are ranked last.
///
/// For a budget of channels, a higher ratio removes a superset. Channels that keep_at_least_one
/// restores are not replaced, but count for a budget of parameters or MACs.
///
///     Settings settings = resolve(read_config("l1.json"), graph);
///     Allocation found = allocate(graph, facts, coupling, settings, {.seed = 1});
///
/// @throws ModelError if a weight that is scored has a NaN, ConfigError if tied layers are not
/// alike or blocks do not divide a group
Allocation allocate(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const Settings& settings, const CriterionOptions& options,
                    const ChooseFunction& choose = {}, const ImportanceCurves& importance = {});

}  // namespace parsimony
