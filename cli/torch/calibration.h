// Calibration data as an order names them.
#pragma once

#include "parsimony/api/network_error.h"
#include "parsimony/graph/graph.h"
#include "parsimony/training/data/dataset.h"

namespace parsimony::component {

/// Reads the samples; a folder's images get the size of the graph's input, where it declares one.
/// @throws ConfigError for a spec that cannot be meant; IoError, ModelError for its files
training::Dataset calibration_data(const CalibrationData& order, const Graph& graph);

/// The same as the network's input takes them, in host memory: batches of the size that the graph
/// declares, or of 64; what does not fill a declared one is left out.
ErrorData calibration_samples(const CalibrationData& order, const Graph& graph);

}  // namespace parsimony::component
