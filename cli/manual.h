// Manual pages and completion scripts, made from the table of commands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace parsimony::cli {

/// The manual page of the program, or of one of its commands, for man(7).
/// @throws ConfigError for a command that there is not
std::string man_page(const CLI::App& app, const std::string& command = {});

/// What bash, zsh or fish reads to complete commands, options and their values.
std::string completion(const CLI::App& app, const std::string& shell);

}  // namespace parsimony::cli
