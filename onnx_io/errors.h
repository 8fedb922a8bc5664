// Error texts of onnx_io/.
#pragma once

#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::onnx_io::errors {

using namespace parsimony::errors;  // NOLINT(google-build-using-namespace): one name for both

IoError cannot_read(std::string_view path, std::string_view why);
IoError cannot_write(std::string_view path, std::string_view why);

ModelError bad_model(std::string_view path, std::string_view why);
ModelError too_large(std::string_view path, int64_t bytes);

/// `what` is "initializer" or "graph input".
ModelError defined_twice(std::string_view what, std::string_view name);
ModelError missing_output(std::string_view name);

}  // namespace parsimony::onnx_io::errors
