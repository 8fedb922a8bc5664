// A Graph as a message.
#pragma once

#include <onnx/onnx_pb.h>

#include "parsimony/graph/graph.h"

namespace parsimony::onnx_io {

/// See to_onnx. Outputs have names only. @throws UnsupportedError
onnx::ModelProto model_of(const Graph& graph);

void set_attributes(const Node& node, onnx::NodeProto& proto);

/// Type and shape of an input or output as the value declares them.
void set_type(const Value& value, onnx::ValueInfoProto& info);

}  // namespace parsimony::onnx_io
