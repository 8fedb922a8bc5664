// What --recover has the component do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parsimony/cli/calibration_order.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony::cli {

struct RecoveryOrder {
  std::vector<RecoveryMethod> steps;  ///< in this order
  CalibrationOrder calibration;
  int rounds = 3;
  double ridge = 1e-3;     ///< of least squares
  TrainSettings finetune;  ///< of `finetune`
  std::function<void(const std::string& line)> say;
  bool accuracy = true;  ///< is to be measured on the test part before and after
};

}  // namespace parsimony::cli
