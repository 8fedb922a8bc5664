// Tensors of a GraphModule by the names that its graph has for them.
#pragma once

#include <string>
#include <vector>

#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/optimizer.h"

namespace parsimony::training {

/// `own` are parameters or buffers of `net`. A tensor that is no weight of the graph keeps the
/// module's name.
std::vector<NamedParameter> by_graph_names(const GraphModuleImpl& net,
                                           const torch::OrderedDict<std::string, at::Tensor>& own);

}  // namespace parsimony::training
