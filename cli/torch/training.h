// Training for the command: from names and specs to a run.
#pragma once

#include "parsimony/cli/training_request.h"

namespace parsimony::component {

LedgerPoint train(const cli::TrainRequest& request);

std::vector<cli::TrainBenchRow> bench_training(const cli::TrainBenchRequest& request);

/// @returns points that others are at work on
int sweep(const cli::SweepRequest& request);

}  // namespace parsimony::component
