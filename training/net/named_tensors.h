// Tensors associated with a network's parameters by name, which are sliced along with it.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "parsimony/speedup/plan.h"

namespace parsimony::training {

/// Keyed by the names of parameters and buffers, with the same shapes.
using NamedTensors = std::map<std::string, at::Tensor>;

/// Slices them like the plan does the network: a shared tensor that the plan separates is copied.
/// @throws ModelError if their shapes are not those before the plan
void follow(const Plan& plan, NamedTensors& tensors);

}  // namespace parsimony::training
