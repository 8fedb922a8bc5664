// A TorchScript file as an ONNX file, made by PyTorch.
#pragma once

#include <string>

#include "parsimony/base/types.h"

namespace parsimony::test {

/// The ONNX file's path; empty if there is no Python with torch. Files are kept: the export costs
/// seconds. `name` is for people.
/// @throws std::runtime_error with what the exporter printed, if it fails
std::string export_onnx(const std::string& name, const std::string& script_path,
                        const Shape& input);

}  // namespace parsimony::test
