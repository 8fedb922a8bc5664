// Nodes that mix channels, such as LayerNormalization, in the masked original.
#pragma once

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::onnx_io {

/// What these nodes give depends on all elements of an axis, so that zeros do not stand for absent
/// ones: where the plan removes some, the operands are gathered, and the results are scattered
/// among zeros. So are operands of sums where channels without weights are not zero, as behind a
/// sigmoid. Integers of such a node that follow the size are changed as in the small model.
/// @param file  the masked original; see mask()
/// @param graph  the original
/// @throws UnsupportedError if the graph's channels are not those of the plan
void gather_around_mixing(ModelFile& file, const Graph& graph, const Plan& plan);

}  // namespace parsimony::onnx_io
