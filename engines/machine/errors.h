// Error texts of engines/machine/.
#pragma once

#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::machine::errors {

/// `found` is what was given for --threads or choose_threads.
ConfigError bad_threads(std::string_view found);

}  // namespace parsimony::machine::errors
