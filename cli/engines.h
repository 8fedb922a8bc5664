// The available engines: libtorch and ONNX Runtime.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/engines.h"
#include "parsimony/engines/engine.h"

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
void add_engine_options(CLI::App& command, EngineOptions& options, std::string& threads);

/// Loads them. @throws ConfigError for an unknown name; UnsupportedError if an engine that was
/// requested, by name or by the path of its library, is not available, or if there is none at all
Engines find_engines(const EngineOptions& options);

}  // namespace parsimony::cli
