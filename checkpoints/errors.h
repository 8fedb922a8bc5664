// Error texts that several files of checkpoints/ share.
#pragma once

#include <cstddef>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

ModelError bad_pickle(std::string_view what, size_t byte, std::string_view why);
ModelError not_a_checkpoint(std::string_view file, std::string_view what);
UnsupportedError fixed_tensor(std::string_view tensor, std::string_view why);

}  // namespace parsimony::errors
