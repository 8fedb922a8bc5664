// Small questions about the nodes and types of a model.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

#include "parsimony/graph/graph.h"

namespace parsimony::onnx_io {

/// "" for "ai.onnx": the two are the same.
std::string canonical_domain(const std::string& domain);

/// An operator of ai.onnx.
bool is_standard(const onnx::NodeProto& node, std::string_view op);

/// An Identity with one input and one output.
bool is_identity(const onnx::NodeProto& node);

/// First non-empty output, by which plans refer to the node; "" if there is none.
const std::string& key_of(const onnx::NodeProto& node);

/// The name, or the key where there is no name.
const std::string& label_of(const onnx::NodeProto& node);

/// Element type, dims and symbols of the value as the file declares them; -1 where it leaves a
/// dimension open.
void declare(const onnx::ValueInfoProto& info, Value& value);

}  // namespace parsimony::onnx_io
