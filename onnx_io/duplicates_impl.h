#pragma once

#include <onnx/onnx_pb.h>

namespace parsimony::onnx_io {

/// Leaves one of the initializers and Constant nodes that define one name alike, as ONNX Runtime
/// does, in bodies as well.
void drop_duplicates(onnx::GraphProto& graph);

}  // namespace parsimony::onnx_io
