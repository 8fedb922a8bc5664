// What was measured of a group.
#pragma once

#include <string_view>

#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::criteria {

/// One number per channel; empty where data did not reach the group.
/// @throws ConfigError if no data ran through the network
Scores measured(const CriterionOptions& options, Measure measure, const Group& group,
                std::string_view criterion);

}  // namespace parsimony::criteria
