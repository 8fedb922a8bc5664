// Prunes a network between two epochs and exports it to ONNX, for any runtime.
#include <parsimony/torch_io/export/export.h>
#include <parsimony/torch_io/prune.h>

#include <cstdio>

#include "models/resnet.h"

int main() {
  torch::manual_seed(1);
  examples::ResNet model(examples::ResNetOptions{.width = 16, .classes = 10});
  const at::Tensor example = torch::rand({1, 3, 64, 64});
  const auto whole = parsimony::export_onnx(model, example, "whole.onnx");

  parsimony::prune(model, example, parsimony::from_shorthand({.criterion = "l2", .ratio = 0.5}));
  // … more training …
  const auto small = parsimony::export_onnx(model, example, "small.onnx", {.dynamic_batch = true});

  std::printf("%s -> %s, %lld of %lld bytes, largest difference %.1e\n", small.inputs[0].c_str(),
              small.outputs[0].c_str(), static_cast<long long>(small.bytes),
              static_cast<long long>(whole.bytes), small.proof.worst()->difference);
  return small.bytes < whole.bytes ? 0 : 1;
}
