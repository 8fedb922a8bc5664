// Model files of every format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/engines/editable_model.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony {

/// Reads a model: an ONNX file, or TorchScript, which is a zip archive. `specs` describe the inputs
/// of TorchScript; ONNX files need none.
/// @throws IoError, ModelError, UnsupportedError, ConfigError
std::unique_ptr<EditableFile> open_model(const std::string& path,
                                         const std::vector<InputSpec>& specs = {});

}  // namespace parsimony
