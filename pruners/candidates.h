// Units with their scores: what a budget is spent on.
#pragma once

#include <vector>

#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/units.h"

namespace parsimony {

/// What is known about a network's groups before anything is decided.
struct Scored {
  std::vector<Unit> units;
  std::vector<Candidate> candidates;        ///< parallel to units
  std::vector<std::vector<double>> scores;  ///< per group, normalised; empty where it is in no unit
  std::vector<Compromise> compromises;
};

/// Follows the layers' settings, ties what goes together and scores it. A request for in_channels
/// is scored by the slices of the layers that read the channels.
Scored score_units(const Graph& graph, const Coupling& coupling, const Settings& settings,
                   const CriterionOptions& options);

/// Elements of the matrices that produce one channel of a group, on average.
int64_t weights_per_channel(const Graph& graph, const Group& group);

}  // namespace parsimony
