// Shape inference by libonnx, for operators that the operator table does not describe.
#pragma once

#include <optional>
#include <vector>

#include "parsimony/graph/operators/node_view.h"

namespace parsimony::onnx_io {

/// Shapes of the node's results, as far as libonnx knows the operator and can tell. Of a version
/// newer than it knows the last one that it does is asked.
std::vector<std::optional<Shape>> shapes_by_schema(const NodeView& node);

}  // namespace parsimony::onnx_io
