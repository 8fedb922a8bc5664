// JSON that is edited and written again.
#pragma once

#include <nlohmann/json.hpp>

#include "parsimony/base/json_reader.h"

namespace parsimony::programs {

/// Returns the value as a tree. Objects have their sizes from the start, since they copy all
/// members when they grow; nlohmann's own parser searches all members for each that it adds.
nlohmann::ordered_json tree_of(const JsonReader& value);

}  // namespace parsimony::programs
