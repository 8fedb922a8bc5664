// Training for the command: from names and specs to a run.
#pragma once

#include "parsimony/cli/training_order.h"

namespace parsimony::component {

LedgerPoint train(const cli::TrainOrder& order);

std::vector<cli::TrainBenchRow> bench_training(const cli::TrainBenchOrder& order);

/// @returns points that others are at work on
int sweep(const cli::SweepOrder& order);

}  // namespace parsimony::component
