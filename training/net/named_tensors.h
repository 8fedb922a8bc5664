// Tensors that belong to a network's own, one by name, and are cut when it is cut.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "parsimony/speedup/plan.h"

namespace parsimony::training {

/// By the names of parameters and buffers, with their shapes.
using NamedTensors = std::map<std::string, at::Tensor>;

/// Cuts them as the plan cut the network: a shared tensor that the plan separates gets its own.
/// @throws ModelError if they do not have the shapes that the plan begins with
void follow(const Plan& plan, NamedTensors& tensors);

}  // namespace parsimony::training
