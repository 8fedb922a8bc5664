// Recovers part of a small network's lost accuracy, using data.
#pragma once

#include <cstdint>

#include "parsimony/api/prune_request.h"
#include "parsimony/api/prune_services.h"
#include "parsimony/data/dataset.h"
#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// Changes values of the small network of `plan`, never its shapes. Nothing is edited; the returned
/// updates replace those of the plan. `say` is called at every step, unless it is empty.
///
///     Recovered result = recover(graph, plan, data, {.steps = {RecoveryMethod::kLeastSquares}});
///     plan.updates = result.updates;
///
/// @throws UnsupportedError for networks that the executor cannot run; ConfigError for fine-tuning
/// without
/// labels; ModelError if plan, data and network do not fit
Recovered recover(const Graph& original, const Plan& plan, const Calibration& data,
                  const RecoverySettings& settings, const Say& say = {});
/// @param samples  of the training set, for calibration
/// @param ranks    that call it together; null: one process
Recovered recover(const Graph& original, const Plan& plan, const Dataset& data,
                  const RecoverySettings& settings, int64_t samples = 256,
                  const RankGroup* ranks = nullptr, c10::Device device = c10::kCPU,
                  const Say& say = {});

/// Recovers a network that was pruned earlier from `dense`; their values have the same names.
/// @returns the updates of `small`
Recovered recover_pruned(const Graph& dense, const Graph& small, const Calibration& data,
                         const RecoverySettings& settings, const Say& say = {});

/// Returns a callback for PruneServices::recover. `data` must outlive it.
Recovery recovery(const Dataset& data, RecoverySettings settings, int64_t samples = 256,
                  const RankGroup* ranks = nullptr, c10::Device device = c10::kCPU, Say say = {});

}  // namespace parsimony::training
