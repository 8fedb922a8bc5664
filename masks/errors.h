// Error texts of the masks room.
#pragma once

#include <string_view>

#include "parsimony/graph/errors.h"

namespace parsimony::errors {

UnsupportedError no_magnitude(std::string_view tensor, std::string_view dtype);

/// The mask file is not in the safetensors format, or contradicts itself.
ModelError bad_mask_file(std::string_view file, std::string_view why);
ModelError bad_mask(std::string_view file, std::string_view tensor, std::string_view why);
UnsupportedError mask_dtype(std::string_view file, std::string_view tensor, std::string_view dtype);
/// A tensor name that a mask file cannot hold.
ModelError unwritable_mask(std::string_view tensor, std::string_view why);

}  // namespace parsimony::errors
