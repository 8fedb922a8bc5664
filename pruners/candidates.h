// Units with their scores: what a budget is allocated to.
#pragma once

#include <vector>

#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/units.h"

namespace parsimony {

/// The scored units of a network, before a budget is applied.
struct Scored {
  std::vector<Unit> units;
  std::vector<Candidate> candidates;  ///< parallel to units
  /// Per group and channel, the rank in the order in which a growing ratio removes the channels of
  /// all groups: if a dimension would be empty its last one is restored, so that a higher ratio
  /// restores no other. Empty for a group that is in no unit.
  PerGroup<std::vector<double>> ranks;
  std::vector<Conflict> conflicts;
};

/// Resolves the layers' settings to units and scores them. A request for in_channels is scored by
/// the slices of the layers that read the channels.
Scored score_units(const Graph& graph, const Coupling& coupling, const Settings& settings,
                   const CriterionOptions& options);

/// Elements of the matrices that produce one channel of a group, on average.
int64_t weights_per_channel(const Graph& graph, const Group& group);

}  // namespace parsimony
