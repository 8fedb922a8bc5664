// Calibration data as an order names them.
#pragma once

#include "parsimony/cli/calibration_order.h"
#include "parsimony/graph/graph.h"
#include "parsimony/training/data/dataset.h"

namespace parsimony::component {

/// Reads the samples; a folder's images get the size of the graph's input, where it declares one.
/// @throws ConfigError for a spec that cannot be meant; IoError, ModelError for its files
training::Dataset calibration_data(const cli::CalibrationOrder& order, const Graph& graph);

}  // namespace parsimony::component
