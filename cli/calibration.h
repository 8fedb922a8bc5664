// The options --calibration, --samples, --mean and --std.
#pragma once

#include <CLI/CLI.hpp>

#include "parsimony/api/prune.h"
#include "parsimony/configs/config.h"

namespace parsimony::cli {

void add_calibration_options(CLI::App& command, CalibrationData& job);

/// The options' settings, or the config's if the options name no data.
/// @throws ConfigError if the options contradict each other
CalibrationData resolved(CalibrationData given, const ConfigList& config);

}  // namespace parsimony::cli
