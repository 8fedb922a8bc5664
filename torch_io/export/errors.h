// Error texts of exporting.
#pragma once

#include <cstddef>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::torch_io::errors {

/// `worst` is the output with the largest difference.
VerificationError export_differs(std::string_view worst);
/// `forward` returns something other than tensors.
UnsupportedError other_results(size_t tensors, size_t wanted);

}  // namespace parsimony::torch_io::errors
