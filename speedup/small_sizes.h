// Numbers that a network computes from its sizes and uses as data: the N of a mean, the N / (N - 1)
// of a sample's variance.
#pragma once

#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The operands with which the small network computes other numbers than the original, where the
/// plan lets them follow. The masked original, whose sizes are the old ones, must be given them.
std::vector<PlanInteger> numbers_of_small_sizes(const Graph& original, const Plan& plan);

}  // namespace parsimony
