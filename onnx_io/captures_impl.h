// What the subgraphs of If, Loop and Scan read from around them.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <string>

namespace parsimony::onnx_io {

/// Calls `visit` for every name that a subgraph of `node`, however deep, reads and does not define.
/// A name may come several times.
void for_each_capture(const onnx::NodeProto& node,
                      const std::function<void(const std::string&)>& visit);

}  // namespace parsimony::onnx_io
