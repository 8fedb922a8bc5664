// Widths that a device computes well, as its measured times show them.
#pragma once

#include <span>

#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/latency/model.h"
#include "parsimony/pruners/latency/subgraphs.h"

namespace parsimony {

/// Of how many indices a kernel computes blocks: the largest power of two, at most 64, of which all
/// widths are multiples behind which the time leaps, and within whose blocks it is even. 0 if the
/// times are too far apart, or too even, to tell.
/// @param widths  ascending
int multiple_of_steps(std::span<const int> widths, std::span<const double> seconds);

/// The same in channels of each group, by the tables of the subgraphs that depend on its width, of
/// which the coarsest counts; halved until the group has two blocks. 0 where no table tells.
PerGroup<int> multiples_of(const Coupling& coupling, std::span<const Subgraph> subgraphs,
                           const LatencyTables& tables);

}  // namespace parsimony
