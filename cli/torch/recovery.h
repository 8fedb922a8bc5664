// Recovery with named data.
#pragma once

#include "parsimony/api/prune.h"

namespace parsimony::component {

/// @throws what training::recover throws; ConfigError, IoError for the data
Recovered recover(const Graph& original, const Plan& plan, const RecoverySettings& settings,
                  const CalibrationData& data);

}  // namespace parsimony::component
