// Which engine is asked for.
#pragma once

#include <string>

namespace parsimony {

struct OnnxRuntimeChoice {
  std::string library = {};   ///< its path; empty: the default locations
  std::string provider = {};  ///< see OnnxRuntime::Options

  bool operator==(const OnnxRuntimeChoice&) const = default;
};

/// What runs networks.
struct EngineChoice {
  std::string name = "auto";  ///< "libtorch", "onnxruntime"; auto: see name_of and engine_of
  OnnxRuntimeChoice onnxruntime = {};

  bool operator==(const EngineChoice&) const = default;
};

}  // namespace parsimony
