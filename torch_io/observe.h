// Runs a network with masked weights and observes its values.
#pragma once

#include <vector>

#include "parsimony/speedup/observation.h"

namespace parsimony::torch_io {

/// Implements Observe with the executor, on two random inputs.
/// @throws UnsupportedError if the executor cannot run it, or not with random inputs
std::vector<std::vector<IndexContent>> observe(const Graph& graph, const Probe& probe,
                                               const std::vector<ElementMask>& masks,
                                               const std::vector<Dimension>& dimensions);

}  // namespace parsimony::torch_io
