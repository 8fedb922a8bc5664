// Names of granularities.
#pragma once

#include <string_view>

#include "parsimony/masks/coupling.h"

namespace parsimony {

/// "channel", "head", "head_dim" or "group", as in configurations and plans.
std::string_view name_of(Granularity granularity);

}  // namespace parsimony
