// Inputs and outputs that are shorter in a small network: states, and others allowed to shrink.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "parsimony/speedup/small_network.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// Converts the dense network's inputs to the small network's, in the graph's order.
std::vector<at::Tensor> small_inputs(const SmallNetwork& small, std::vector<at::Tensor> inputs);

/// Returns the outputs of the small network that feed its states.
std::vector<ValueId> state_outputs(const SmallNetwork& small, const std::vector<FedBack>& states);

/// Sets states to zero where a stream begins, if the small network's states have other shapes than
/// the dense network's and no plan specifies what was removed. @returns whether that is so
bool begin_states(const SmallNetwork& small, const std::vector<FedBack>& states,
                  std::vector<at::Tensor>& inputs);

/// Converts batches for the small network: its states are its own, computed with its current
/// values.
BatchSource small_feed(const SmallNetwork& small, BatchSource feed);

}  // namespace parsimony::training
