// From an ONNX model to the Graph that the analysis works on.
#pragma once

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/model_file.h"

namespace parsimony::onnx_io {

/// What an edit leaves of a tensor in an external file.
enum class EditedData {
  kCopied,   ///< lies in memory
  kMadeAnew  ///< has no data: Graph::make makes it whenever it is asked for
};

/// Views of the model; `file` must outlive the Graph. Weights that an editor changes afterwards
/// are no longer valid in it; read again after editing.
///
/// - Initializers and Constant nodes become values with a weight; the Constant nodes are left out.
/// - An Identity of such a value is left out too: who reads it reads the weight. Only the node
///   that makes a graph output stays.
/// - Sparse, string, complex, float8 and int4 tensors are values without a weight, marked
///   `captured` so that nothing shrinks there.
/// - Nodes and values of subgraphs stand in the one Graph; their names begin with the path to them,
///   "y::then_branch::w" (see kInside). Inputs and results of bodies are marked `captured`.
/// - A tensor attribute NAME stands as a list under NAME, its element type under "NAME.dtype".
///
/// @throws ModelError, beginning with the file's path: names without an origin or with two, dims
/// that contradict the data, a cycle, external data outside of the model's folder.
/// After an edit the graph is that of the edited model.
Graph to_graph(const ModelFile& file, EditedData data = EditedData::kCopied);

}  // namespace parsimony::onnx_io
