// Builds the Graph of an ONNX model.
#pragma once

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/model_file.h"

namespace parsimony::onnx_io {

/// The form of edited external tensors in a Graph.
enum class EditedData {
  kCopied,  ///< copied to memory
  kLazy     ///< without data: Graph::make materialises it on demand
};

/// Returns the graph with views of the model; `file` must outlive it. Weights that an editor
/// changes afterwards become invalid; read again after editing.
///
/// - Initializers and Constant nodes become values with a weight; the Constant nodes are omitted.
/// - An Identity of such a value is skipped too: its readers read the weight. Only the node that
///   produces a graph output is kept.
/// - Sparse, string, complex and float8e8m0 tensors are values without a weight, and pinned.
/// - Nodes and values of subgraphs are part of the same Graph; their names begin with their path,
///   "y::then_branch::w" (see kInside). Results of bodies are marked `captured`.
/// - A tensor attribute NAME becomes a list under NAME, with its element type under "NAME.dtype".
///
/// @throws ModelError, beginning with the file's path: undefined or duplicate names, dims that
/// contradict the data, a cycle, external data outside of the model's folder. After an edit the
/// graph is that of the edited model.
Graph to_graph(const ModelFile& file, EditedData data = EditedData::kCopied);

}  // namespace parsimony::onnx_io
