// Error texts of exports.
#pragma once

#include <cstddef>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::torch_io::errors {

/// `worst` is the output that is furthest off.
VerificationError export_differs(std::string_view worst);
/// `forward` returns something beside tensors.
UnsupportedError other_results(size_t tensors, size_t wanted);

}  // namespace parsimony::torch_io::errors
