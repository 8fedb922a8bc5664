#include "parsimony/onnx_io/errors.h"

namespace parsimony::onnx_io::errors {

IoError cannot_read(std::string_view path, std::string_view why) {
  return IoError(path, ": cannot be read: ", why);
}

IoError cannot_write(std::string_view path, std::string_view why) {
  return IoError(path, ": cannot be written: ", why);
}

ModelError bad_model(std::string_view path, std::string_view why) {
  return ModelError(path, ": ", why);
}

ModelError too_large(std::string_view path, int64_t bytes) {
  return ModelError(
      path, ": ", bytes,
      " bytes exceed the 2 GB that one ONNX file can hold; save the model with external data");
}

ModelError defined_twice(std::string_view what, std::string_view name) {
  return ModelError(what, " ", in_quotes(name),
                    " is defined twice: names of values must be unique");
}

ModelError missing_output(std::string_view name) {
  return ModelError("graph output ", in_quotes(name),
                    " is neither a graph input, nor an initializer, nor the output of a node");
}

}  // namespace parsimony::onnx_io::errors
