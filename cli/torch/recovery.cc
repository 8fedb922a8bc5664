#include "parsimony/cli/torch/recovery.h"

#include <algorithm>
#include <limits>

#include "parsimony/cli/torch/calibration.h"
#include "parsimony/training/data/dataset.h"
#include "parsimony/training/recovery/recover.h"

namespace parsimony::component {

Recovered recover(const Graph& original, const Plan& plan, const cli::RecoveryOrder& order) {
  const auto& steps = order.steps;
  cli::CalibrationOrder wanted = order.calibration;
  // Fine-tuning sees the whole training part, the other steps its beginning.
  if (std::find(steps.begin(), steps.end(), RecoveryMethod::kFinetune) != steps.end()) {
    wanted.samples = std::numeric_limits<int64_t>::max();
  }
  training::Dataset data = calibration_data(wanted, original);
  if (!order.accuracy) data.test.labels.clear();
  training::RecoverOptions options;
  options.steps = steps;
  options.samples = order.calibration.samples;
  options.ridge = order.ridge;
  options.rounds = order.rounds;
  options.finetune = order.finetune;
  options.say = order.say;
  return training::recover(original, plan, data, options);
}

}  // namespace parsimony::component
