// Models from text, files in a folder that goes away.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "tests/support/fixture.h"

namespace parsimony::onnx_io::test {

using parsimony::test::model_of;
using parsimony::test::TemporaryFolder;

void save(const onnx::ModelProto& model, const std::string& path);
onnx::ModelProto load(const std::string& path);
std::string bytes_of(const std::string& path);
void write_bytes(const std::string& path, std::string_view bytes);

onnx::TensorProto& initializer(onnx::ModelProto& model, const std::string& name);
const Weight& weight_of(const Graph& graph, const std::string& value);
const Node& node_of(const Graph& graph, const std::string& output);

/// 1, 2, 3, … in the given type, with a sign that alternates where there is one.
onnx::TensorProto counting(const std::string& name, int32_t data_type, const Shape& dims, bool raw);

/// Moves the raw data of `tensor` to `file`, behind what it holds. `location` is relative.
void make_external(onnx::TensorProto& tensor, const std::string& file, const std::string& location);

/// The message of the E that `action` throws; "" if it throws none.
template <typename E, typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace parsimony::onnx_io::test
