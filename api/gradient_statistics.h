// Statistics of the gradients of a loss that another process has.
#pragma once

#include "parsimony/api/process_engine.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// Adds the measures of `needs` that take gradients, as training/statistics defines them: the
/// process differentiates its loss, and sums over all but channels and samples.
/// @throws UnsupportedError if it has no loss or cannot run the network; ConfigError if there is no
/// run
void add_gradients(ProcessEngine& process, const Graph& graph, const Coupling& coupling,
                   const Needs& needs, Statistics& statistics);

}  // namespace parsimony
