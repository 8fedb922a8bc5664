#include "parsimony/engines/machine/errors.h"

#include <string>

namespace parsimony::machine::errors {

ConfigError bad_threads(std::string_view found) {
  return ConfigError("threads: found \"" + std::string(found) +
                     "\", wanted auto or a number from 1 to 256");
}

}  // namespace parsimony::machine::errors
