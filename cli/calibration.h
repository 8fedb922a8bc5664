// The options --calibration, --samples, --mean and --std.
#pragma once

#include <CLI/CLI.hpp>

#include "parsimony/api/prune.h"
#include "parsimony/configs/config.h"

namespace parsimony::cli {

void add_calibration_options(CLI::App& command, CalibrationData& order);

/// What the options say, or the config where they name no data.
/// @throws ConfigError if the options contradict each other
CalibrationData resolved(CalibrationData given, const ConfigList& config);

}  // namespace parsimony::cli
