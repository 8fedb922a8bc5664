// A rule for a custom operator is one line that relates the axes of its operands and results.
#include <onnx/defs/parser.h>
#include <parsimony/api/prune.h>
#include <parsimony/base/errors.h>
#include <parsimony/graph/operators/schema.h>
#include <parsimony/onnx_io/editor.h>
#include <parsimony/onnx_io/model_file.h>
#include <parsimony/onnx_io/reader.h>

#include <cstdio>
#include <fstream>

namespace {

/// Writes two layers with an unknown operator between them.
void write_network(const std::string& path) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, R"(
      <ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
      gated (float[N, 6] x) => (float[N, 3] y)
      {
        h = MatMul(x, w1)
        g = com.example.Swish(h)
        y = MatMul(g, w2)
      })");
  if (!status.IsOK()) throw parsimony::ModelError(status.ErrorMessage());
  const auto add = [&](const char* name, int64_t rows, int64_t columns) {
    onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(rows);
    tensor.add_dims(columns);
    for (int64_t i = 0; i < rows * columns; ++i) {
      tensor.add_float_data(static_cast<float>((i * 7) % 11) - 5);
    }
  };
  add("w1", 6, 8);
  add("w2", 8, 3);
  std::ofstream file(path, std::ios::binary);
  if (!model.SerializeToOstream(&file)) throw parsimony::IoError("cannot write ", path);
}

/// Returns how many channels of the first layer are removed at ratio 0.5.
int removed_channels(const std::string& path) {
  parsimony::onnx_io::ModelFile file(path);
  parsimony::Graph graph = parsimony::onnx_io::to_graph(file);
  const auto config = parsimony::from_shorthand({.criterion = "l1", .ratio = 0.5});
  const parsimony::Pruning pruning = parsimony::plan_pruning(graph, config);
  parsimony::onnx_io::OnnxEditor editor(file);
  parsimony::apply_plan(pruning.plan, graph, pruning.analysis.probe, editor);
  file.write("small.onnx");
  int removed = 0;
  for (const parsimony::PlanGroup& group : pruning.plan.groups) removed += group.size - group.kept;
  return removed;
}

}  // namespace

int main() {
  write_network("gated.onnx");
  const int before = removed_channels("gated.onnx");
  // x·sigmoid(x) is elementwise and maps zero to zero.
  parsimony::add_operator({.op = "Swish",
                           .line = "x[..s] -> y[..s]",
                           .zero = parsimony::ZeroBehaviour::kZero,
                           .domain = "com.example"});
  const int after = removed_channels("gated.onnx");
  std::printf("channels removed without the rule: %d, with it: %d\n", before, after);
  return before == 0 && after == 4 ? 0 : 1;
}
