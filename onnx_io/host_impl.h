// Writes small constants into a model.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "parsimony/graph/host_tensor.h"

namespace parsimony::onnx_io {

/// As raw data. @throws UnsupportedError for strings; ModelError if count and dims disagree.
onnx::TensorProto tensor_of(const std::string& name, const HostTensor& constant);

}  // namespace parsimony::onnx_io
