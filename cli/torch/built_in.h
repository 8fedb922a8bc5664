// The built-in networks of `--model`, for images of any size and number of classes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/training/net/net.h"

namespace parsimony::component {

using MakeNet = std::function<std::unique_ptr<training::Net>()>;

std::vector<std::string> built_in_names();
bool is_built_in(const std::string& name);

/// For inputs of `dims`, [c, h, w]. Null if no network has this name.
/// @throws ConfigError if the network does not accept such inputs
MakeNet built_in(const std::string& name, const Shape& dims, int64_t classes);

}  // namespace parsimony::component
