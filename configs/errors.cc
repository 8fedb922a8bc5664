#include "parsimony/configs/errors.h"

namespace parsimony::errors {

ConfigError unknown_word(std::string_view place, std::string_view word,
                         std::span<const std::string_view> known) {
  return ConfigError(place, ": found ", in_quotes(word), ", expected ", one_of(known));
}

ConfigError out_of_range(std::string_view place, std::string_view value, std::string_view range) {
  return ConfigError(place, ": found ", value, ", expected a number in ", range);
}

}  // namespace parsimony::errors
