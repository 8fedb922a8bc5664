// `parsimony bench MODEL…`: run times of models, measured interleaved on the available engines.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/engines.h"
#include "parsimony/api/latency/profiler.h"
#include "parsimony/cli/command.h"
#include "parsimony/engines/engine.h"
#include "parsimony/engines/timing.h"

namespace parsimony::cli {

struct EngineOptions {
  std::string engine = "all";  ///< "libtorch", "onnxruntime" or "all": all available ones
  OnnxRuntimeChoice onnxruntime;
  std::optional<int> threads;  ///< of every engine; empty: what `doctor` finds best
};

struct Engines {
  std::vector<std::unique_ptr<Engine>> found;
  std::vector<std::string> notes;  ///< on engines of "all" that are not available
  int threads = 1;
};

/// Adds --engine, --onnxruntime and, as `threads`, --threads.
void add_engine_options(CLI::App& command, EngineOptions& options, std::optional<int>& threads);

/// Loads the engines. @throws ConfigError for an unknown name; UnsupportedError if an engine that
/// was requested, by name or by the path of its library, is not available, or if there is none
Engines find_engines(const EngineOptions& options);

struct LatencyOptions {
  std::vector<std::string> models;
  std::vector<std::string> specs;  ///< of --input
  std::string batches;             ///< "1,64"; empty: as in the files
  EngineOptions engines;
  std::optional<int> threads;
  machine::InterleavedOptions rounds;
  LatencyCommand command;  ///< in place of engines
  uint64_t seed = 1;
  std::string json;
};

/// Parses "1,64"; an empty text is one empty entry, the batch of the files. @throws ConfigError
std::vector<std::optional<int64_t>> parse_batches(const std::string& text);

void add_options(CLI::App& command, LatencyOptions& options);

/// @throws UnsupportedError if nothing could be run
void bench_latency(const LatencyOptions& options, const Session& session);

}  // namespace parsimony::cli
