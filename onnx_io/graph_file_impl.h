// A Graph as a message.
#pragma once

#include <onnx/onnx_pb.h>

#include "parsimony/graph/graph.h"

namespace parsimony::onnx_io {

/// Builds the model of to_onnx(). Outputs have names only. @throws UnsupportedError
onnx::ModelProto model_of(const Graph& graph);

void set_attributes(const Node& node, onnx::NodeProto& proto);

/// Sets type and shape of an input or output to those that the value declares.
void set_type(const Value& value, onnx::ValueInfoProto& info);

}  // namespace parsimony::onnx_io
