// Error texts that masks/ and the rooms above it share.
#pragma once

#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::errors {

ModelError bad_tensor(std::string_view file, std::string_view tensor, std::string_view why);
/// The mask's shape is not that of the tensor.
ModelError mask_does_not_fit(std::string_view tensor, const Shape& mask, const Shape& found);

}  // namespace parsimony::errors
