// Error texts of the masks room.
#pragma once

#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::errors {

UnsupportedError no_magnitude(std::string_view tensor, std::string_view dtype);

/// The file is not in the safetensors format, or contradicts itself.
ModelError bad_tensor_file(std::string_view file, std::string_view why);
ModelError bad_tensor(std::string_view file, std::string_view tensor, std::string_view why);
UnsupportedError tensor_dtype(std::string_view file, std::string_view tensor,
                              std::string_view dtype);
/// The mask's shape is not that of the tensor.
ModelError mask_does_not_fit(std::string_view tensor, const Shape& mask, const Shape& found);
/// What the format cannot hold.
ModelError unwritable_tensor(std::string_view tensor, std::string_view why);

}  // namespace parsimony::errors
