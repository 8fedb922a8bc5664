// A Graph as a message.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <optional>

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/export/export.h"

namespace parsimony::onnx_io {

/// Builds the model of to_onnx(). Outputs have names only. @throws UnsupportedError
/// @param place  see ExportOptions
onnx::ModelProto model_of(
    const Graph& graph,
    const std::function<std::optional<ExternalPlace>(const Weight&)>& place = {});

void set_attributes(const Node& node, onnx::NodeProto& proto);

/// Sets type and shape of an input or output to those that the value declares.
void set_type(const Value& value, onnx::ValueInfoProto& info);

}  // namespace parsimony::onnx_io
