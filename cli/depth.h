// What removing residual blocks needs on the command line: data that run through the network.
#pragma once

#include <string>

#include "parsimony/api/depth.h"
#include "parsimony/cli/calibration_order.h"
#include "parsimony/cli/recovery_order.h"
#include "parsimony/cli/torch_component.h"

namespace parsimony::cli {

/// Adds what --layers asks for. `original`, the network with all of its blocks, and `torch` must
/// outlive the options. With steps of recovery, candidates of `auto` are compared behind these, but
/// for fine-tuning.
/// @throws ConfigError if it is no number of blocks, or there are no data
void add_depth(const std::string& layers, const Graph& original, const CalibrationOrder& data,
               const RecoveryOrder& recovery, LazyTorch& torch, PruneOptions& options);

}  // namespace parsimony::cli
