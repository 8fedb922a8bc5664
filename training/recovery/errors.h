// What can be wrong with recovery, in words.
#pragma once

#include <cstddef>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::training::errors {

/// A network that stands for a graph was asked for more than training.
UnsupportedError only_trained(std::string_view what);
/// Labelled samples feed one input.
UnsupportedError recovery_inputs(size_t inputs);

}  // namespace parsimony::training::errors
