// The options --recover and what belongs to it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "parsimony/cli/recovery_order.h"
#include "parsimony/configs/config.h"

namespace parsimony::cli {

struct RecoveryOptions {
  std::vector<std::string> steps;  ///< as given
  std::string recipe;              ///< a file; its `train` is how `finetune` trains
  int epochs = 2;                  ///< of `finetune`, where no recipe says it
  int rounds = 3;
  double ridge = 1e-3;
};

void add_recovery_options(CLI::App& command, RecoveryOptions& options);

/// The steps of the config list where the command names none; none where neither does.
/// @throws ConfigError for an unknown step, or if there are no calibration data; IoError
RecoveryOrder recovery_order(const RecoveryOptions& options, const CalibrationOrder& calibration,
                             const ConfigList& config);

}  // namespace parsimony::cli
