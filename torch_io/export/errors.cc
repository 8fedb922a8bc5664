#include "parsimony/torch_io/export/errors.h"

#include <string>

namespace parsimony::torch_io::errors {

VerificationError export_differs(std::string_view worst) {
  return VerificationError("the ONNX model does not compute what the module does: " +
                           std::string(worst) + "; nothing was written");
}

UnsupportedError other_results(size_t tensors, size_t wanted) {
  return UnsupportedError("\"forward\" returns " + std::to_string(tensors) + " tensors, but " +
                          std::to_string(wanted) +
                          " values that an ONNX model would return: let it return tensors only");
}

}  // namespace parsimony::torch_io::errors
