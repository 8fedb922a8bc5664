// The built-in networks of `--model`: for images of any size and number of classes, and for text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/data/dataset.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::component {

using MakeNet = std::function<std::unique_ptr<training::TrainableModel>()>;

std::vector<std::string> built_in_names();
bool is_built_in(const std::string& name);

/// For these samples and classes. Null if no network has this name.
/// @throws ConfigError if the network does not accept such samples
MakeNet built_in(const std::string& name, const Dataset& data);

}  // namespace parsimony::component
