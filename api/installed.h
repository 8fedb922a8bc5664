// Files that are installed with the command.
#pragma once

#include <filesystem>
#include <string>

namespace parsimony {

/// Beside the command, in the build tree or installed; or at the installation prefix, for other
/// programs.
std::filesystem::path installed_file(const std::string& name);

}  // namespace parsimony
