// What a group of ranks has: where they are, how they are connected, and how long a sum takes.
#pragma once

#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/engines/machine/report.h"

namespace parsimony::training {

/// All ranks call it; takes about a second. @throws as RankGroup does
std::vector<machine::Finding> examine_ranks(const RankPlace& place);

}  // namespace parsimony::training
