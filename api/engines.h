// Engines that the library brings beside libtorch's (see torch_component.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "parsimony/engines/engine.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony {

/// What runs networks.
struct EngineChoice {
  std::string name = "auto";     ///< "libtorch", "onnxruntime"; auto: libtorch if it is installed
  std::string onnxruntime = {};  ///< path of its library; empty: the default locations
};

/// "libtorch" or "onnxruntime". @throws ConfigError for another name
std::string name_of(const EngineChoice& choice);

/// The engine for proofs. libtorch is loaded when a network is first opened.
/// @param threads  empty: what suits the engine
/// @throws ConfigError for an unknown name, UnsupportedError if ONNX Runtime cannot be loaded
std::unique_ptr<Engine> engine_of(const EngineChoice& choice, std::optional<int> threads);

/// ONNX Runtime. It reads files; a graph without one is written as ONNX first. It masks nothing but
/// by zeros, so that plans that mix cannot be opened masked.
std::unique_ptr<Engine> onnx_runtime_engine(const runtime::OnnxRuntime& library, int threads);

}  // namespace parsimony
