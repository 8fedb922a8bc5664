// Runs a network with zeros in its weights and looks at what its values hold.
#pragma once

#include <vector>

#include "parsimony/speedup/observation.h"

namespace parsimony::torch_io {

/// The implementation of Observe by our executor, on two random inputs.
/// @throws UnsupportedError for what the executor does not run, or not on random inputs
std::vector<std::vector<IndexContent>> observe(const Graph& graph, const Probe& probe,
                                               const std::vector<ElementMask>& masks,
                                               const std::vector<Dimension>& dimensions);

}  // namespace parsimony::torch_io
