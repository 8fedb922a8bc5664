// Directories of transformers, which the Python package opens.
#pragma once

#include <string>
#include <vector>

namespace parsimony::cli {

/// Replaces this process by the Python package, which builds networks from configurations, if these
/// are the words of `prune` or `explain` for a directory with the configuration of a class.
/// @throws UnsupportedError if there is no Python
void hand_over_pretrained(const std::vector<std::string>& words);

}  // namespace parsimony::cli
