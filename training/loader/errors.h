// What can be wrong with the options of a loader, in words.
#pragma once

#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::training::errors {

ConfigError bad_loader_option(std::string_view option, std::string_view found,
                              std::string_view wanted);

}  // namespace parsimony::training::errors
