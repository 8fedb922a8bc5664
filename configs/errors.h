// Error texts that several files of configs/ share. `place` is file, entry and key: "cnn.json:
// config_list[2].op_types".
#pragma once

#include <span>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

ConfigError unknown_word(std::string_view place, std::string_view word,
                         std::span<const std::string_view> known);
ConfigError out_of_range(std::string_view place, std::string_view value, std::string_view range);

}  // namespace parsimony::errors
