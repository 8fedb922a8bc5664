// Statistics of activations, measured on an engine that takes graphs.
#pragma once

#include "parsimony/api/prune.h"
#include "parsimony/engines/engine.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// The measures that need no gradients, and second moments. Outputs are added to the network, and
/// the moments are summed by the engine, in float32 within a run.
/// @throws ConfigError, IoError for the data; ModelError if they do not fit; UnsupportedError for
/// what cannot be run
Statistics measure_on(Engine& engine, const Graph& graph, const Facts& facts,
                      const Coupling& coupling, const Needs& needs, const CalibrationData& data);

/// Does the measure need no gradients?
bool is_forward(Measure measure);

}  // namespace parsimony
