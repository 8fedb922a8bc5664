// Recovery in closed form on an engine that takes graphs.
#pragma once

#include "parsimony/api/prune_request.h"
#include "parsimony/api/prune_services.h"
#include "parsimony/engines/engine.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

/// By methods in closed form; the others change nothing.
/// @throws ConfigError, IoError for the data; ModelError if they do not fit; UnsupportedError for
/// what cannot be run
Recovered recover_on(Engine& engine, const Graph& original, const Plan& plan,
                     const RecoverySettings& settings, const CalibrationData& data,
                     const Say& say = {});

}  // namespace parsimony
