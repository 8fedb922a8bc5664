// Attributes of a node as the analysis sees them.
#pragma once

#include <onnx/onnx_pb.h>

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/external_data.h"

namespace parsimony::onnx_io {

/// Fills `attributes` and `has_subgraph` of `to`. A small tensor attribute NAME becomes its list of
/// integers or floats under NAME and its element type ("float32") under "NAME.dtype"; large
/// tensors, strings of bytes in tensors and types are left out.
void read_attributes(const onnx::NodeProto& from, ExternalData& external, Node& to);

}  // namespace parsimony::onnx_io
