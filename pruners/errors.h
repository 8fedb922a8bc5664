// Error texts that several files of pruners/ share.
#pragma once

#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

ConfigError unknown_criterion(std::string_view name);
/// The criterion reads sums that a training loop accumulates.
ConfigError needs_training(std::string_view criterion);
/// The criterion reads statistics, and there is no Measurement.
ConfigError needs_data(std::string_view criterion);

}  // namespace parsimony::errors
