// Inputs and outputs that are shorter in a small network: states, and those that were set free.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "parsimony/speedup/small_network.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// What the small network takes for the dense network's inputs, in the graph's order.
std::vector<at::Tensor> small_inputs(const SmallNetwork& small, std::vector<at::Tensor> inputs);

/// The outputs of the small network that its states take.
std::vector<ValueId> state_outputs(const SmallNetwork& small, const std::vector<FedBack>& states);

/// Zeros where a stream begins, if the small network's states have other shapes than the dense
/// network's and no plan says what they lost. @returns is that so?
bool begin_states(const SmallNetwork& small, const std::vector<FedBack>& states,
                  std::vector<at::Tensor>& inputs);

/// The batches as the small network takes them: its states are its own, with the values that it has
/// now.
BatchSource small_feed(const SmallNetwork& small, BatchSource feed);

}  // namespace parsimony::training
