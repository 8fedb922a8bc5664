// Units with their scores: what a budget is spent on.
#pragma once

#include <vector>

#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/units.h"

namespace parsimony {

/// What is known about a network's groups before anything is decided.
struct Scored {
  std::vector<Unit> units;
  std::vector<Candidate> candidates;  ///< parallel to units
  /// Per group and channel, ascending in the order in which a growing ratio removes the channels of
  /// all groups: of a dimension that would be empty the last of them comes back, so that a higher
  /// ratio gives back no other. Empty where the group is in no unit.
  std::vector<std::vector<double>> turns;
  std::vector<Compromise> compromises;
};

/// Follows the layers' settings, ties what goes together and scores it. A request for in_channels
/// is scored by the slices of the layers that read the channels.
Scored score_units(const Graph& graph, const Coupling& coupling, const Settings& settings,
                   const CriterionOptions& options);

/// Elements of the matrices that produce one channel of a group, on average.
int64_t weights_per_channel(const Graph& graph, const Group& group);

}  // namespace parsimony
