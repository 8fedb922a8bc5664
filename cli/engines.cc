#include "parsimony/cli/engines.h"

#include <algorithm>
#include <cstdlib>

#include "parsimony/api/engines.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/options.h"
#include "parsimony/engines/errors.h"
#include "parsimony/engines/machine/processor.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony::cli {
namespace {

constexpr const char* kTorch = "libtorch";
constexpr const char* kOnnxRuntime = "onnxruntime";
constexpr const char* kAll = "all";

void check_name(const std::string& name) {
  const std::vector<std::string> known = {kTorch, kOnnxRuntime, kAll};
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw parsimony::errors::unknown_engine(name, known);
  }
}

/// libtorch measures how many are best; without it there is one per processor.
int choose_threads(bool with_torch, std::optional<int> wanted) {
  if (with_torch) return torch_component().choose_threads(wanted);
  return wanted.value_or(machine::these_cores().usable());
}

}  // namespace

void add_engine_options(CLI::App& command, EngineOptions& options, std::string& threads) {
  add_option(command, "--engine", options.engine, "NAME",
             "What runs the models: libtorch, onnxruntime or all (those that are found, the "
             "default)");
  add_onnxruntime_options(command, options.onnxruntime);
  add_threads_option(command, threads);
}

Engines find_engines(const EngineOptions& options) {
  check_name(options.engine);
  const bool all = options.engine == kAll;
  const char* variable = std::getenv("PARSIMONY_ONNXRUNTIME");
  const bool library_named =
      !options.onnxruntime.library.empty() || (variable != nullptr && *variable != '\0');
  Engines engines;
  std::optional<runtime::OnnxRuntime> library;
  if (all || options.engine == kOnnxRuntime) {
    try {
      library = runtime::find_onnx_runtime(options.onnxruntime.library);
    } catch (const UnsupportedError& error) {
      if (!all || library_named) throw;
      engines.notes.emplace_back(error.what());
    }
  }
  bool with_torch = options.engine == kTorch;
  if (all) {
    try {
      torch_component();
      with_torch = true;
    } catch (const UnsupportedError& error) {
      if (!library) throw;
      engines.notes.emplace_back(error.what());
    }
  }
  engines.threads = choose_threads(with_torch, options.threads);
  if (with_torch)
    engines.found.push_back(std::make_unique<LazyTorch>(engines.threads, LazyTorch::For::kTimes));
  if (library)
    engines.found.push_back(onnx_runtime_engine(
        *library, {.threads = engines.threads, .provider = options.onnxruntime.provider}));
  return engines;
}

}  // namespace parsimony::cli
