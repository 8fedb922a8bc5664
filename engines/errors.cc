#include "parsimony/engines/errors.h"

namespace parsimony::runtime::errors {

UnsupportedError no_such_type(std::string_view tensor, std::string_view dtype) {
  return UnsupportedError("ONNX Runtime does not support elements of type ", dtype, " for ",
                          in_quotes(tensor));
}

}  // namespace parsimony::runtime::errors

namespace parsimony::machine::errors {

ConfigError bad_threads(std::string_view found) {
  return ConfigError("threads: found ", in_quotes(found),
                     ", expected auto or a number from 1 to 256");
}

}  // namespace parsimony::machine::errors
