#include "parsimony/engines/errors.h"

#include <string>

namespace parsimony::runtime::errors {

UnsupportedError no_library(std::string_view path, std::string_view why) {
  return UnsupportedError("ONNX Runtime cannot be loaded from " + std::string(path) + ": " +
                          std::string(why));
}

UnsupportedError not_onnx_runtime(std::string_view path, std::string_view symbol) {
  return UnsupportedError(std::string(path) + " is a library, but not ONNX Runtime: it has no " +
                          std::string(symbol));
}

UnsupportedError too_old(std::string_view path, std::string_view version, uint32_t wanted) {
  return UnsupportedError(std::string(path) + " is ONNX Runtime " + std::string(version) +
                          ", which does not have version " + std::to_string(wanted) +
                          " of its C interface; wanted 1." + std::to_string(wanted) +
                          ".0 or newer");
}

UnsupportedError not_found(std::span<const std::string> tried) {
  std::string text =
      "ONNX Runtime was not found; give --onnxruntime PATH, or set PARSIMONY_ONNXRUNTIME to its "
      "libonnxruntime.so, or run tools/ort/install.sh";
  for (const std::string& place : tried) text += "\n  " + place;
  return UnsupportedError(text);
}

UnsupportedError refused(std::string_view message) {
  return UnsupportedError("ONNX Runtime: " + std::string(message));
}

UnsupportedError no_kernel_library(std::string_view path, std::string_view why) {
  return UnsupportedError("--ort-library " + std::string(path) +
                          " cannot be loaded: " + std::string(why));
}

UnsupportedError without_kernels(std::string_view path, std::string_view symbol) {
  return UnsupportedError("--ort-library " + std::string(path) +
                          " is a library, but not one of custom operators: it has no " +
                          std::string(symbol));
}

UnsupportedError refused_kernels(std::string_view path, std::string_view message) {
  return UnsupportedError("--ort-library " + std::string(path) + ": " + std::string(message));
}

UnsupportedError no_provider(std::string_view provider, std::string_view version,
                             std::span<const std::string> known) {
  std::string text = "--provider: ONNX Runtime " + std::string(version) +
                     " has no execution provider " + in_quotes(provider) + "; it has ";
  for (size_t i = 0; i < known.size(); ++i) text += (i == 0 ? "" : ", ") + known[i];
  return UnsupportedError(text);
}

UnsupportedError too_old_for_providers(std::string_view version) {
  return UnsupportedError("--provider: ONNX Runtime " + std::string(version) +
                          " takes this one since 1.12");
}

UnsupportedError refused_provider(std::string_view provider, std::string_view message) {
  return UnsupportedError("--provider: " + std::string(provider) + ": " + std::string(message));
}

UnsupportedError no_such_type(std::string_view tensor, std::string_view dtype) {
  return UnsupportedError("ONNX Runtime takes no elements of type " + std::string(dtype) +
                          " for \"" + std::string(tensor) + "\"");
}

UnsupportedError no_tensor(std::string_view output) {
  return UnsupportedError("output \"" + std::string(output) + "\" is no tensor");
}

UnsupportedError unknown_shape(std::string_view input) {
  return UnsupportedError("the shape of input \"" + std::string(input) +
                          "\" is not known; give --input");
}

UnsupportedError fixed_batch(std::string_view input, std::string_view shape, int64_t wanted) {
  return UnsupportedError("the file fixes input \"" + std::string(input) + "\" to " +
                          std::string(shape) + ", a batch of " + std::to_string(wanted) +
                          " does not fit");
}

}  // namespace parsimony::runtime::errors

namespace parsimony::machine::errors {

ConfigError bad_threads(std::string_view found) {
  return ConfigError("threads: found \"" + std::string(found) +
                     "\", wanted auto or a number from 1 to 256");
}

}  // namespace parsimony::machine::errors
