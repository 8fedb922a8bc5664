// Runs training jobs.
#pragma once

#include "parsimony/cli/training_request.h"

namespace parsimony::component {

LedgerPoint train(const cli::TrainRequest& request);

std::vector<cli::TrainBenchRow> bench_training(const cli::TrainBenchRequest& request);

/// @returns the number of points that other processes are working on
int sweep(const cli::SweepRequest& request);

}  // namespace parsimony::component
