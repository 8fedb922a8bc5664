// `parsimony bench MODEL…`: run times of models, measured interleaved.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/cli/command.h"
#include "parsimony/cli/engines.h"
#include "parsimony/engines/timing.h"

namespace parsimony::cli {

struct LatencyOptions {
  std::vector<std::string> models;
  std::vector<std::string> specs;  ///< of --input
  std::string batches;             ///< "1,64"; empty: as in the files
  EngineOptions engines;
  std::string threads;
  machine::InterleavedOptions rounds;
  LatencyCommand command;  ///< in place of engines
  uint64_t seed = 1;
  std::string json;
};

/// "1,64"; one empty entry, the files' own batch, if nothing is given. @throws ConfigError
std::vector<std::optional<int64_t>> parse_batches(const std::string& text);

void add_options(CLI::App& command, LatencyOptions& options);

/// @throws UnsupportedError if nothing could be run
void bench_latency(const LatencyOptions& options, const Session& session);

}  // namespace parsimony::cli
