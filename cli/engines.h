// The engines that run models, where they are found: libtorch and ONNX Runtime.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/engines/engine.h"

namespace parsimony::cli {

struct EngineOptions {
  std::string engine = "all";  ///< "libtorch", "onnxruntime" or "all": those that are found
  std::string onnxruntime;     ///< path of its library; empty: where it is usually found
  std::optional<int> threads;  ///< of every engine; empty: what `doctor` finds best
};

struct Engines {
  std::vector<std::unique_ptr<Engine>> found;
  std::vector<std::string> notes;  ///< on those of "all" that were not found
  int threads = 1;
};

/// Adds --engine, --onnxruntime and, as `threads`, --threads.
void add_engine_options(CLI::App& command, EngineOptions& options, std::string& threads);

/// Loads them. @throws ConfigError for a name that is none; UnsupportedError if one that was asked
/// for, by its name or by the path of its library, cannot be had, or if there is none at all
Engines find_engines(const EngineOptions& options);

}  // namespace parsimony::cli
