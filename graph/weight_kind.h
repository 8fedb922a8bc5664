// Which constants are weights, that can lose channels, and which are shapes, indices and tables.
#pragma once

#include "parsimony/graph/graph.h"

namespace parsimony {

/// A weight of floating point numbers or of bytes, or one of wider integers that only quantised
/// operators read: their biases and zero points.
bool is_weight(const Graph& graph, const Value& value);

}  // namespace parsimony
