// Error texts of the command.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::cli::errors {

/// `message` is CLI11's; `command` may be empty.
ConfigError usage(std::string_view command, std::string_view message);
ConfigError unknown_command(std::string_view name, std::span<const std::string> known);
ConfigError unexpected(std::string_view command, std::string_view argument,
                       std::span<const std::string> known);

/// `reasons`: one for each model and engine.
UnsupportedError nothing_runs(std::span<const std::string> reasons);

}  // namespace parsimony::cli::errors
