// Smaller networks beside the one they came from, on the same data.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/api/network_error.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony {

/// Inputs drawn at random, where there are no data; `specs` are those of --input.
struct RandomOrder {
  std::vector<InputSpec> specs;
  int64_t samples = 16;
  uint64_t seed = 1;
};

/// Runs `original` on the calibration data, or without any on random inputs. `torch` must outlive
/// the comparison.
/// @throws ConfigError, IoError, ModelError for the data; UnsupportedError if libtorch cannot run
/// it
NetworkComparison compare_with(const Graph& original, const CalibrationData& data,
                               const RandomOrder& random, LazyTorch& torch);

}  // namespace parsimony
