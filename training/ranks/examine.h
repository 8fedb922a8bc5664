// Diagnoses a group of ranks: hosts, connections, and how long a sum takes.
#pragma once

#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/engines/machine/report.h"

namespace parsimony::training {

/// Must be called by all ranks; takes about a second. @throws as RankGroup does
std::vector<machine::Finding> examine_ranks(const RankPlace& place);

}  // namespace parsimony::training
