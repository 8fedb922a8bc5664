// Error texts of jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::component::errors {

ConfigError unknown_model(std::string_view name, std::span<const std::string> known);
ConfigError wrong_inputs(std::string_view model, std::string_view found, std::string_view wanted);

/// --mean and --std need one number per channel.
ConfigError means_of_arrays();
UnsupportedError ranks_on_cpu();
/// A sample's states are those that the one before it leaves.
UnsupportedError states_in_ranks();
ConfigError loss_needs_arrays(std::string_view loss);

}  // namespace parsimony::component::errors
