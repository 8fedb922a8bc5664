// The masked original as a file, for engines that read files.
#pragma once

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::onnx_io {

/// Zeroes everything that the plan removes: slices except those of divisors, single elements, the
/// branches of blocks; with exact constants, the masked elements. Quantised weights are set to
/// their zero point. Copies, scales, new values and numbers that follow sizes are as in the small
/// model.
///
/// Correct if zero weights are equivalent to removing the channel; nodes that mix channels need
/// gather_around_mixing() as well. External tensors stay external and are masked when the model is
/// written; `plan` must exist until then.
/// @throws ModelError if the plan does not fit; UnsupportedError if the zero points differ by
/// block or are computed
void mask(ModelFile& file, const Plan& plan);

/// Gathers the operands of nodes whose results depend on all elements of an axis, where the plan
/// removes some of these, and scatters the results among zeros: zeros do not stand for absent
/// elements there. Also gathers operands of sums where channels without weights are not zero, as
/// behind a sigmoid. Integers of such nodes that follow the size are changed as in the small model.
/// @param file  the masked original; see mask()
/// @param graph  the original
/// @throws UnsupportedError if the graph's channels are not those of the plan
void gather_around_mixing(ModelFile& file, const Graph& graph, const Plan& plan);

}  // namespace parsimony::onnx_io
