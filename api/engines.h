// Engines that the library brings beside libtorch's (see torch_component.h).
#pragma once

#include <memory>

#include "parsimony/engines/engine.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony {

/// ONNX Runtime. It reads files; a graph without one is written as ONNX first. It masks nothing but
/// by zeros, so that plans that mix cannot be opened masked.
std::unique_ptr<Engine> onnx_runtime_engine(const runtime::OnnxRuntime& library, int threads);

}  // namespace parsimony
