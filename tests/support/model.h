// A model in the notation of OnnxParser, as a Graph.
#pragma once

#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/model_file.h"

namespace parsimony::test {

/// An initializer "W 8x3x3x3" of seeded numbers; see add_weight.
struct SeededWeight {
  std::string name;
  std::string dims;
  std::string kind = "";
  std::string type = "float";
};

class TextModel {
 public:
  TextModel(const std::string& text, const std::vector<SeededWeight>& weights);

  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  /// The file as it was written; may be edited.
  onnx_io::ModelFile& file() { return file_; }

 private:
  onnx_io::ModelFile file_;  // before the graph, which points into it
  Graph graph_;
};

}  // namespace parsimony::test
