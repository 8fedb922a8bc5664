// Training of graphs: a Graph that is trained without its file, logits for the loss, and tensor
// names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/optimizer.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

/// Copies the weights, with the graph's names. What is trained is copied back to the graph's
/// source.
/// @throws UnsupportedError for several inputs, and if the executor cannot run it
std::unique_ptr<TrainedModule> graph_net(const Graph& graph);

/// `own` are parameters or buffers of `net`. A tensor that is not a weight of the graph keeps the
/// module's name.
std::vector<NamedParameter> by_graph_names(const GraphModuleImpl& net,
                                           const torch::OrderedDict<std::string, at::Tensor>& own);

/// The same network without a final Softmax: cross-entropy takes logits.
Graph with_logits(Graph graph);

}  // namespace parsimony::training
