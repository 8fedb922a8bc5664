// Gives a small network back some of what it lost, by data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/training/data/dataset.h"

namespace parsimony::training {

struct RecoverOptions {
  std::vector<RecoveryMethod> steps;  ///< in this order
  int64_t samples = 256;              ///< of the training part: calibration
  int rounds = 3;                     ///< of least squares, see RefitOptions
  double ridge = 1e-3;                ///< of least squares, see least_squares()
  /// kFinetune: on the whole training part. The dense network teaches, where `distill` says so.
  TrainSettings finetune;
  std::function<void(const std::string& line)> say = {};  ///< told of every step
};

/// Changes values of the small network that `plan` makes of `original`: never its shapes. Nothing
/// is edited; the folds that come back belong into the plan in place of its own.
///
///     Recovered result = recover(graph, plan, data, {.steps = {RecoveryMethod::kLeastSquares}});
///     plan.folds = result.folds;
///
/// @throws UnsupportedError for several inputs and for what the executor does not run; ModelError
/// if plan, data and network do not fit
Recovered recover(const Graph& original, const Plan& plan, const Dataset& data,
                  const RecoverOptions& options);

}  // namespace parsimony::training
