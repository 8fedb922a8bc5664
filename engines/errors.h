// Error texts of engines/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::runtime::errors {

/// `why` is the loader's message.
UnsupportedError no_library(std::string_view path, std::string_view why);
/// A library without ONNX Runtime's entry point.
UnsupportedError not_onnx_runtime(std::string_view path, std::string_view symbol);
UnsupportedError too_old(std::string_view path, std::string_view version, uint32_t wanted);
/// `tried` lists each location and why it failed.
UnsupportedError not_found(std::span<const std::string> tried);
/// `message` is ONNX Runtime's.
UnsupportedError refused(std::string_view message);
/// A library of custom operators; `why` is the loader's message.
UnsupportedError no_kernel_library(std::string_view path, std::string_view why);
/// A library without the entry point of custom operators.
UnsupportedError without_kernels(std::string_view path, std::string_view symbol);
/// `message` is ONNX Runtime's.
UnsupportedError refused_kernels(std::string_view path, std::string_view message);
/// `known` are those that the library has.
UnsupportedError no_provider(std::string_view provider, std::string_view version,
                             std::span<const std::string> known);
UnsupportedError too_old_for_providers(std::string_view version);
/// `message` is ONNX Runtime's.
UnsupportedError refused_provider(std::string_view provider, std::string_view message);
UnsupportedError no_such_type(std::string_view tensor, std::string_view dtype);
UnsupportedError no_tensor(std::string_view output);

UnsupportedError unknown_shape(std::string_view input);
UnsupportedError fixed_batch(std::string_view input, std::string_view shape, int64_t wanted);

}  // namespace parsimony::runtime::errors

namespace parsimony::machine::errors {

/// `found` is what was given for --threads or choose_threads.
ConfigError bad_threads(std::string_view found);

}  // namespace parsimony::machine::errors
