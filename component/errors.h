// What can be wrong with an order, in words.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "parsimony/graph/errors.h"

namespace parsimony::component::errors {

ConfigError unknown_model(std::string_view name, std::span<const std::string> known);
ConfigError wrong_inputs(std::string_view model, std::string_view found, std::string_view wanted);

}  // namespace parsimony::component::errors
