#include "tests/support/model.h"

#include "parsimony/base/files.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

onnx_io::ModelFile written(const std::string& text, const std::vector<SeededWeight>& weights) {
  onnx::ModelProto model = model_of(text);
  for (const SeededWeight& weight : weights) {
    add_weight(model, weight.name, weight.dims, weight.type, weight.kind);
  }
  const TemporaryFolder folder;
  write_file(folder / "model.onnx", model.SerializeAsString());
  return onnx_io::ModelFile(folder / "model.onnx");
}

}  // namespace

TextModel::TextModel(const std::string& text, const std::vector<SeededWeight>& weights)
    : file_(written(text, weights)), graph_(onnx_io::to_graph(file_)) {}

}  // namespace parsimony::test
