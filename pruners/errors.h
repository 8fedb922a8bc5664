// Error texts of the pruners room.
#pragma once

#include <string_view>

#include "parsimony/graph/errors.h"

namespace parsimony::errors {

ConfigError unknown_criterion(std::string_view name);
/// `possible` is the share that may go.
ConfigError cannot_anneal(double ratio, double possible);

}  // namespace parsimony::errors
