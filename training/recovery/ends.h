// Inputs and outputs that are shorter in a small network: states, and those that were set free.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "parsimony/speedup/small_network.h"

namespace parsimony::training {

/// What the small network takes for the dense network's inputs, in the graph's order.
std::vector<at::Tensor> small_inputs(const SmallNetwork& small, std::vector<at::Tensor> inputs);

/// What the small network should give for the dense network's outputs.
std::vector<at::Tensor> small_outputs(const SmallNetwork& small, std::vector<at::Tensor> outputs);

}  // namespace parsimony::training
