// Error texts of TorchScript files.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::torch_io::script {

/// libtorch's message without its backtrace.
std::string first_line(const std::exception& error);

namespace errors {

ModelError not_torchscript(std::string_view path, std::string_view why);
ModelError not_read(std::string_view path);
ModelError cannot_read(std::string_view why);
ModelError no_forward();
ModelError unknown_result(std::string_view value);
ModelError no_tensor_results();
ConfigError missing_input(std::string_view name, size_t position, size_t given);
UnsupportedError no_such_type_of_input(std::string_view name, std::string_view type);
ConfigError input_needs_value(std::string_view name);
ConfigError too_many_inputs(size_t given, size_t wanted);

ModelError unknown_node(std::string_view key);
ModelError unknown_tensor(std::string_view name);
ModelError name_taken(std::string_view name);
ModelError no_such_input(std::string_view node, int input, int inputs);
UnsupportedError not_written(std::string_view node, std::string_view what);
UnsupportedError shared_place(std::string_view node, std::string_view what);
UnsupportedError no_scale(std::string_view node);
UnsupportedError cannot_edit(std::string_view why);
UnsupportedError not_onnx(std::string_view path, std::string_view engine);
/// The small program, as it will be written.
VerificationError not_read_back(std::string_view why);

}  // namespace errors
}  // namespace parsimony::torch_io::script
