// Words for what is removed as one.
#pragma once

#include <string_view>

#include "parsimony/masks/coupling.h"

namespace parsimony {

/// "channel", "head", "head_dim" or "group", as configurations and plans spell it.
std::string_view name_of(Granularity granularity);

}  // namespace parsimony
