// Model files of every format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/engines/editable_model.h"
#include "parsimony/graph/interface.h"

namespace parsimony {

/// Reads a model: an ONNX file; or a zip archive, TorchScript or .pt2. `specs` describe the inputs
/// of TorchScript; the others need none.
/// @throws IoError, ModelError, UnsupportedError, ConfigError
std::unique_ptr<EditableFile> open_model(const std::string& path,
                                         const std::vector<InputSpec>& specs = {});

/// Returns the size of the model's file and of the data files beside it. @throws IoError
int64_t bytes_with_data(const EditableFile& model);

}  // namespace parsimony
