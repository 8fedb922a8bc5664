// The calibration data of a job.
#pragma once

#include "parsimony/api/network_error.h"
#include "parsimony/graph/graph.h"
#include "parsimony/training/data/dataset.h"

namespace parsimony::component {

/// Reads the samples; images from folders are resized to the graph's input, if its size is
/// declared.
/// @throws ConfigError for an invalid spec; IoError, ModelError for its files
training::Dataset calibration_data(const CalibrationData& job, const Graph& graph);

/// The same in host memory, in batches of the size that the graph declares, or of 64; an incomplete
/// last batch of declared size is dropped.
ErrorData calibration_samples(const CalibrationData& job, const Graph& graph);

}  // namespace parsimony::component
