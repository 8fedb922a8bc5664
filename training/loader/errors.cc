#include "parsimony/training/loader/errors.h"

#include <string>

namespace parsimony::training::errors {

ConfigError bad_loader_option(std::string_view option, std::string_view found,
                              std::string_view wanted) {
  return ConfigError("loader: " + std::string(option) + " is " + std::string(found) + ", wanted " +
                     std::string(wanted));
}

}  // namespace parsimony::training::errors
