// Uses the installed headers and libraries as a stranger would: reads a model, writes it back.
#include <exception>
#include <iostream>

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: consumer IN.onnx OUT.onnx\n";
    return 2;
  }
  try {
    parsimony::onnx_io::ModelFile file(argv[1]);
    const parsimony::Graph graph = parsimony::onnx_io::to_graph(file);
    file.write(argv[2]);
    std::cout << graph.nodes.size() << " nodes, " << graph.weights.size() << " weights\n";
    return graph.nodes.empty() ? 1 : 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
