// Writes a Graph as an ONNX model, for engines that read only files.
#pragma once

#include <string>

#include "parsimony/graph/graph.h"

namespace parsimony::onnx_io {

/// Writes a model with the graph's nodes, their weights, and inputs; only inputs have shapes.
/// Weights are copied. To edit a file use OnnxEditor: a Graph contains only what the analysis
/// needs.
/// @throws UnsupportedError for a graph that was not read from ONNX, for nodes with bodies, and for
/// weights without elements
std::string to_onnx(const Graph& graph);

}  // namespace parsimony::onnx_io
