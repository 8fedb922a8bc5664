// `parsimony bench --train MODEL`: how long training steps take, and why.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "parsimony/cli/bench_latency.h"
#include "parsimony/cli/command.h"

namespace parsimony::cli {

struct BenchTrainingOptions {
  std::string model;  ///< empty: nothing is trained
  std::string data;
  std::string optimizer;
};

void add_options(CLI::App& command, BenchTrainingOptions& options);

/// Batch, threads, seconds and JSON are shared with the latency benchmark.
/// @throws ConfigError; UnsupportedError if nothing could be run
void bench_training(const BenchTrainingOptions& options, const LatencyOptions& shared,
                    const Session& session);

}  // namespace parsimony::cli
