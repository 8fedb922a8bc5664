// The option --threads of all commands that run networks.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace parsimony::cli {

/// Adds --threads; `text` is what was given.
void add_threads_option(CLI::App& command, std::string& text);
void add_threads_option(CLI::App& command, std::optional<int>& threads);

/// Empty for "auto", the default. @throws ConfigError
std::optional<int> parse_threads(const std::string& text);

}  // namespace parsimony::cli
