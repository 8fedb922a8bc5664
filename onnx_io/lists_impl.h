#pragma once

#include "parsimony/graph/graph.h"

namespace parsimony::onnx_io {

/// Lists of tensors whose elements are known, by their number and place, go: SequenceAt becomes an
/// Identity of the element, ConcatFromSequence a Concat, SplitToSequence a Split. Call before
/// `finish`.
void resolve_lists(Graph& graph);

}  // namespace parsimony::onnx_io
