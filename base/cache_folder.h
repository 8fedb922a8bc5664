// Where what can be made again is kept between runs.
#pragma once

#include <filesystem>

namespace parsimony {

/// $PARSIMONY_CACHE; else the folder "parsimony" in $XDG_CACHE_HOME or ~/.cache, as the scripts of
/// tools/ have it.
std::filesystem::path cache_folder();

}  // namespace parsimony
