// What a loss is computed from.
#pragma once

#include "parsimony/graph/graph.h"

namespace parsimony::training {

/// The same network, answering with what stands before a Softmax at its end: cross-entropy takes
/// logits.
Graph with_logits(Graph graph);

}  // namespace parsimony::training
