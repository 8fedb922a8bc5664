#include "parsimony/masks/errors.h"

namespace parsimony::errors {

ModelError bad_tensor(std::string_view file, std::string_view tensor, std::string_view why) {
  return ModelError(file, ": tensor ", in_quotes(tensor), ": ", why);
}

ModelError mask_does_not_fit(std::string_view tensor, const Shape& mask, const Shape& found) {
  return ModelError("the mask of tensor ", in_quotes(tensor), " has shape ", to_string(mask),
                    ", the tensor ", to_string(found));
}

}  // namespace parsimony::errors
