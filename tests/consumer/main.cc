// Uses the installed headers and libraries as a stranger would: prunes a model, writes it twice.
#include <exception>
#include <iostream>
#include <string>

#include "parsimony/api/prune_file.h"
#include "parsimony/onnx_io/model_file.h"

namespace {

/// Writes the model without half of its channels. Returns what remains of its parameters, 0..1.
double prune(const std::string& in, const std::string& out) {
  const parsimony::PruneResult result =
      parsimony::prune_file(in, out, {.criterion = "l1", .ratio = 0.5});
  return static_cast<double>(result.small.params) / static_cast<double>(result.dense.params);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: consumer IN.onnx SAME.onnx SMALL.onnx\n";
    return 2;
  }
  try {
    parsimony::onnx_io::ModelFile(argv[1]).write(argv[2]);
    const double left = prune(argv[1], argv[3]);
    std::cout << "parameters left: " << 100 * left << "%\n";
    return left > 0 && left < 0.5 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
