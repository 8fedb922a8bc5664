// Recovery for the command: from an order to data and settings.
#pragma once

#include "parsimony/cli/recovery_order.h"
#include "parsimony/graph/graph.h"

namespace parsimony::component {

/// @throws what training::recover throws; ConfigError, IoError for the data
Recovered recover(const Graph& original, const Plan& plan, const cli::RecoveryOrder& order);

}  // namespace parsimony::component
