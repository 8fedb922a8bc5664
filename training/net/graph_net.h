// Training of graphs without their files, logits for the loss, and tensor names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/optimizer.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

/// Copies the weights, with the graph's names. Trained values are copied back to the graph's source
/// by the caller.
/// @throws UnsupportedError for several inputs, and if the executor cannot run it
std::unique_ptr<TrainedModule> graph_net(const Graph& graph);

/// Renames `own`, parameters or buffers of `net`, after the graph's weights. A tensor that is not a
/// weight of the graph keeps the module's name.
std::vector<NamedParameter> by_graph_names(const GraphModuleImpl& net,
                                           const torch::OrderedDict<std::string, at::Tensor>& own);

/// Returns the network without a final Softmax: cross-entropy takes logits.
Graph with_logits(Graph graph);

}  // namespace parsimony::training
