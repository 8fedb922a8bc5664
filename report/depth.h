// Residual blocks for people.
#pragma once

#include <string>

#include "parsimony/speedup/depth.h"

namespace parsimony {

/// "7 of 25 residual blocks removed." and, of `auto`, a table of what was tried; with `all` also a
/// table of the blocks.
std::string to_text(const DepthReport& report, bool all = false);

/// A table of the blocks that could go: their nodes, parameters, MACs.
std::string blocks_text(const DepthReport& report);
std::string blocks_json(const DepthReport& report);

}  // namespace parsimony
