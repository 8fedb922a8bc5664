#include "parsimony/cli/torch/recovery.h"

#include <algorithm>
#include <limits>

#include "parsimony/cli/torch/calibration.h"
#include "parsimony/training/data/dataset.h"
#include "parsimony/training/recovery/recover.h"

namespace parsimony::component {

Recovered recover(const Graph& original, const Plan& plan, const RecoverySettings& settings,
                  const CalibrationData& data) {
  const auto& steps = settings.steps;
  CalibrationData wanted = data;
  // Fine-tuning sees the whole training part, the other steps its beginning.
  if (std::find(steps.begin(), steps.end(), RecoveryMethod::kFinetune) != steps.end()) {
    wanted.samples = std::numeric_limits<int64_t>::max();
  }
  training::Dataset samples = calibration_data(wanted, original);
  if (!settings.accuracy) samples.test.labels.clear();
  return training::recover(original, plan, samples, settings, data.samples);
}

}  // namespace parsimony::component
