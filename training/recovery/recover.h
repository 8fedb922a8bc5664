// Gives a small network back some of what it lost, by data.
#pragma once

#include <cstdint>

#include "parsimony/api/prune.h"
#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/training/data/dataset.h"

namespace parsimony::training {

/// Changes values of the small network that `plan` makes of `original`: never its shapes. Nothing
/// is edited; the folds that come back belong into the plan in place of its own.
///
///     Recovered result = recover(graph, plan, data, {.steps = {RecoveryMethod::kLeastSquares}});
///     plan.folds = result.folds;
///
/// @throws UnsupportedError for several inputs and for what the executor does not run; ModelError
/// if plan, data and network do not fit
/// @param samples of the training part: calibration
Recovered recover(const Graph& original, const Plan& plan, const Dataset& data,
                  const RecoverySettings& settings, int64_t samples = 256);

/// What PruneOptions::recover takes. `data` must outlive it.
Recovery recovery(const Dataset& data, RecoverySettings settings, int64_t samples = 256);

}  // namespace parsimony::training
