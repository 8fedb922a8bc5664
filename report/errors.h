// Error texts of report/.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "parsimony/graph/errors.h"

namespace parsimony::errors {

ConfigError report_unknown_node(std::string_view name, std::span<const std::string> known);
ConfigError report_unknown_group(std::string_view id, std::span<const std::string> known);

}  // namespace parsimony::errors
