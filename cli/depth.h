// What removing residual blocks needs on the command line: data that run through the network.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "parsimony/api/depth.h"
#include "parsimony/cli/calibration_order.h"
#include "parsimony/cli/recovery_order.h"

namespace parsimony::cli {

/// For what --layers says. `original`, the network with all of its blocks, must outlive it. With
/// steps of recovery, candidates of `auto` are compared behind these, but for fine-tuning.
/// @throws ConfigError if it is no number of blocks, or there are no data
DepthOptions depth_options(const std::string& layers, const Graph& original,
                           const CalibrationOrder& data, const RecoveryOrder& recovery,
                           std::optional<int> threads);

}  // namespace parsimony::cli
