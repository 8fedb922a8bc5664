// A network in an ONNX file, for tests that measure.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {

struct MeasuredNetwork {
  TemporaryFolder folder;
  std::unique_ptr<onnx_io::ModelFile> file;
  Graph graph;

  /// `weights` are names with sizes: {"w1", "16x3x3x3"}.
  MeasuredNetwork(const std::string& text,
                  const std::vector<std::pair<std::string, std::string>>& weights) {
    onnx::ModelProto model = model_of(text);
    for (const auto& [name, sizes] : weights) add_weight(model, name, sizes);
    const std::string path = folder / "net.onnx";
    write_file(path, model.SerializeAsString());
    file = std::make_unique<onnx_io::ModelFile>(path);
    graph = onnx_io::to_graph(*file);
  }
};

}  // namespace parsimony::test
