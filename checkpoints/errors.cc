#include "parsimony/checkpoints/errors.h"

namespace parsimony::errors {

ModelError bad_pickle(std::string_view what, size_t byte, std::string_view why) {
  return ModelError(what, ": byte ", byte, " of the pickle: ", why);
}

ModelError not_a_checkpoint(std::string_view file, std::string_view what) {
  return ModelError(file, ": not a checkpoint: ", what);
}

UnsupportedError fixed_tensor(std::string_view tensor, std::string_view why) {
  return UnsupportedError("tensor ", in_quotes(tensor), " cannot be cut: ", why);
}

}  // namespace parsimony::errors
