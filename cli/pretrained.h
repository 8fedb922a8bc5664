// Directories of transformers, which the Python package opens.
#pragma once

#include <string>
#include <string_view>

#include "parsimony/cli/command.h"

namespace parsimony::cli {

/// Is it a directory with the configuration of a class, or of modules one of which has that?
bool is_pretrained(const std::string& path);

/// The folder with the configuration of a class: that of the first module with one, if
/// sentence-transformers has written the directory, else the directory.
std::string folder_of_class(const std::string& directory);

/// Replaces this process by the Python package, which builds networks from configurations, if the
/// model of a command is such a directory.
/// @throws UnsupportedError if there is no Python; without the package the process ends with words
void hand_over_pretrained(std::string_view command, const std::string& model,
                          const Session& session);

}  // namespace parsimony::cli
