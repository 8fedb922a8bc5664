// The options --calibration, --samples, --mean and --std.
#pragma once

#include <CLI/CLI.hpp>

#include "parsimony/cli/calibration_order.h"
#include "parsimony/cli/torch_component.h"
#include "parsimony/configs/config.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::cli {

void add_calibration_options(CLI::App& command, CalibrationOrder& order);

/// What the options say, or the config where they name no data.
/// @throws ConfigError if the options contradict each other
CalibrationOrder resolved(CalibrationOrder given, const ConfigList& config);

/// Has libtorch, which must outlive it, measure with these data; empty if there are none.
Measurement measurement(const CalibrationOrder& order, const LazyTorch& torch);

}  // namespace parsimony::cli
