// Error texts of engines/.
#pragma once

#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::runtime::errors {

UnsupportedError no_such_type(std::string_view tensor, std::string_view dtype);

}  // namespace parsimony::runtime::errors

namespace parsimony::machine::errors {

/// `found` is the invalid number of threads.
ConfigError bad_threads(std::string_view found);

}  // namespace parsimony::machine::errors
