// Compares smaller networks with their original on the same data.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/api/data_engine.h"
#include "parsimony/api/network_error.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony {

/// Random inputs, if there are no data; `specs` are those of --input.
struct RandomInputSpec {
  std::vector<InputSpec> specs;
  int64_t samples = 16;
  uint64_t seed = 1;
};

/// Runs `original` on the calibration data, or without any on random inputs. `engine` must outlive
/// the comparison.
/// @param unseen  on data that calibration does not see, if there are any: see TorchComponent
/// @throws ConfigError, IoError, ModelError for the data; UnsupportedError if the engine cannot run
/// it
NetworkComparison compare_with(const Graph& original, const CalibrationData& data,
                               const RandomInputSpec& random, DataEngine& engine,
                               bool unseen = false);

}  // namespace parsimony
