// Engines that the library brings beside libtorch's (see torch_component.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "parsimony/api/prune_request.h"
#include "parsimony/engines/engine.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony {

/// "libtorch" or "onnxruntime"; of auto libtorch, if it is installed and no execution provider is
/// named. @throws ConfigError for another name, and for libtorch with a provider
std::string name_of(const EngineChoice& choice);

/// The engine for proofs; of auto ONNX Runtime, which is there sooner, and otherwise libtorch.
/// libtorch is loaded when a network is first opened. Operators run on one thread, on which their
/// results depend.
/// @param cores  for libtorch's work side by side; empty: all
/// @throws ConfigError for an unknown name, UnsupportedError if ONNX Runtime cannot be loaded
std::unique_ptr<Engine> engine_of(const EngineChoice& choice, std::optional<int> cores);

/// The engine of name_of(choice), to time networks with so many threads; throws as engine_of().
std::unique_ptr<Engine> timed_engine_of(const EngineChoice& choice, int threads);

/// ONNX Runtime. It reads files; a graph without one is written as ONNX first, and cannot be opened
/// masked.
std::unique_ptr<Engine> onnx_runtime_engine(const runtime::OnnxRuntime& library,
                                            const runtime::OnnxRuntime::Options& options,
                                            std::unique_ptr<Engine> fallback = nullptr);

}  // namespace parsimony
