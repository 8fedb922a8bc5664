// From scores and settings to masks: how many channels of each group are removed, and which.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// Bounds of one group's removal.
struct GroupLimits {
  int size = 0;
  int least = 0;     ///< channels that are removed in any case
  int most = 0;      ///< channels that may be removed; less than size
  int round_to = 1;  ///< the number kept is a multiple of this, or everything

  /// Returns how many channels are removed if `expected` are asked for; monotonic in it. Where
  /// bounds contradict each other the more conservative one wins: round_to (which rounds up the
  /// number kept), then max_ratio and keep_at_least, then min_ratio.
  int removed(int expected) const;
  /// The largest allowed number of removed channels below `count`; `count` if there is none.
  int fewer(int count) const;
};

/// A unit of the allocator's decisions: a group, several that lose the same channels, or units that
/// lose equally many, whose channel is one of each, in the order in which they are removed.
struct Candidate {
  GroupLimits limits;
  std::vector<double> score;  ///< per channel, comparable between candidates
  std::vector<int> order;     ///< channels in order of removal
  int64_t weight = 1;         ///< elements of the producing matrices per channel: Budget::kWeights
  /// Hash of its sub-graph: Scope::kIsomorphic ranks candidates with equal ones together.
  uint64_t shape = 0;
  int below = 0;  ///< channels that score less than the request's threshold
  int units = 1;  ///< that lose equally many
};

/// The share of the total importance that the best 0, 1, … channels of groups that lose the same
/// ones retain: 0..1, ascending; empty if unknown.
using ImportanceCurves =
    std::function<std::vector<double>(std::span<const GroupId> groups, const Candidate& candidate)>;

/// The outcome of an allocation: what is removed.
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
/// For a budget of channels, a higher ratio removes a superset. Channels that keep_enough
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
