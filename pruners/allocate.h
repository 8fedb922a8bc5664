// From scores and settings to masks: how many channels of each group go, and which.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// Why a group was treated otherwise than some of its layers ask.
struct Compromise {
  int group = kNone;
  std::string reason;
};

struct Allocation {
  AxisMasks masks;
  std::vector<Compromise> compromises;
  int given_back = 0;  ///< channels that returned because a dimension would have been empty
};

/// Prunes every group as its layers ask. A group follows its most careful layer.
/// @throws ModelError if a weight that is scored has a NaN
Allocation allocate(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const Settings& settings, const CriterionOptions& options);

}  // namespace parsimony
