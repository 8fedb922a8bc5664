// The engines of the library, in addition to libtorch's (see torch_component.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "parsimony/api/prune_request.h"
#include "parsimony/engines/engine.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony {

/// Whether its weights, of 1 GiB or more, are not to be in memory twice.
bool too_large_to_copy(const Graph& graph);

/// Returns "libtorch" or "onnxruntime"; "auto" is libtorch if it is installed and no execution
/// provider is set. @throws ConfigError for another name, and for libtorch with a provider
std::string name_of(const EngineChoice& choice);

/// Returns the engine for proofs; "auto" is ONNX Runtime, which loads faster, with libtorch as
/// fallback. libtorch is loaded when a network is first opened. Operators run on one thread, as
/// their results depend on the number of threads.
/// @param cores  for parallel work of libtorch; empty: all
/// @throws ConfigError for an unknown name, UnsupportedError if ONNX Runtime cannot be loaded
std::unique_ptr<Engine> engine_of(const EngineChoice& choice, std::optional<int> cores);

/// Returns the engine name_of(choice), for timing networks with `threads` threads; throws like
/// engine_of().
std::unique_ptr<Engine> timed_engine_of(const EngineChoice& choice, int threads);

/// Returns ONNX Runtime as an engine. It reads files: a graph without a file is first written as
/// ONNX, and cannot be opened masked.
std::unique_ptr<Engine> onnx_runtime_engine(const runtime::OnnxRuntime& library,
                                            const runtime::OnnxRuntime::Options& options,
                                            std::unique_ptr<Engine> fallback = nullptr);

}  // namespace parsimony
