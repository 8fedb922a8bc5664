// The element types of what a node computes, as its operator alone tells them.
#pragma once

#include "parsimony/graph/graph.h"

namespace parsimony {

/// Conditions are booleans and places are int64, whatever they are found in; every other result is
/// of the type of the first operand that is no condition. Casts are not known here.
/// @source ONNX operators, opset 17
DType result_type(const Graph& graph, const Node& node, size_t output);

}  // namespace parsimony
