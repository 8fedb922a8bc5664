// Graphs that are trained: a Graph as a Net, without a file; what a loss is computed from; its
// names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/optimizer.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// Copies the weights; named as the graph names them. It cannot be pruned or saved: its values go
/// back to where the graph came from. `graph` must outlive it.
/// @throws UnsupportedError for several inputs, and for what the executor does not run
std::unique_ptr<Net> graph_net(const Graph& graph);

/// `own` are parameters or buffers of `net`. A tensor that is no weight of the graph keeps the
/// module's name.
std::vector<NamedParameter> by_graph_names(const GraphModuleImpl& net,
                                           const torch::OrderedDict<std::string, at::Tensor>& own);

/// The same network, answering with what stands before a Softmax at its end: cross-entropy takes
/// logits.
Graph with_logits(Graph graph);

}  // namespace parsimony::training
