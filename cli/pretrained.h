// Directories of transformers, which the Python package opens.
#pragma once

#include <string>
#include <string_view>

#include "parsimony/cli/command.h"

namespace parsimony::cli {

/// Replaces this process by the Python package, which builds networks from configurations, if the
/// model of a command is a directory with the configuration of a class.
/// @throws UnsupportedError if there is no Python
void hand_over_pretrained(std::string_view command, const std::string& model,
                          const Session& session);

}  // namespace parsimony::cli
