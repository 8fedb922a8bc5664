// Statistics measured for a group.
#pragma once

#include <string_view>

#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::criteria {

/// One number per channel; empty if no data reached the group.
/// @throws ConfigError if there are no statistics
Scores measured(const CriterionOptions& options, Measure measure, const Group& group,
                std::string_view criterion);

}  // namespace parsimony::criteria
