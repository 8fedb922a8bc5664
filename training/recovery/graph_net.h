// A Graph as a Net: what can be trained without a file.
#pragma once

#include <memory>

#include "parsimony/graph/graph.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// Copies the weights; named as the graph names them. It cannot be pruned or saved: its values go
/// back to where the graph came from. `graph` must outlive it.
/// @throws UnsupportedError for several inputs, and for what the executor does not run
std::unique_ptr<Net> graph_net(const Graph& graph);

}  // namespace parsimony::training
