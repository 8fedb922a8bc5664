// A graph that outlives edits of its model.
#pragma once

#include "parsimony/graph/graph.h"
#include "parsimony/graph/graph_builder.h"

namespace parsimony {

/// Copies the constants whose elements shape inference reads into `memory`, which must outlive the
/// graph.
void own_literals(Graph& graph, TensorMemory& memory);

}  // namespace parsimony
