// Writes a Graph as an ONNX model, for engines that take nothing else.
#pragma once

#include <string>

#include "parsimony/graph/graph.h"

namespace parsimony::onnx_io {

/// The bytes of a model with the graph's nodes, the weights that these read, and inputs; no shapes
/// except those of the inputs. Weights are copied. To edit a file use OnnxEditor: a Graph does not
/// represent what the analysis does not need.
/// @throws UnsupportedError for a graph that was not read from ONNX, for nodes with bodies and for
/// weights whose elements are not there
std::string to_onnx(const Graph& graph);

}  // namespace parsimony::onnx_io
