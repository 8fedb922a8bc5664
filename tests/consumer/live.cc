// Prunes a module in memory, with the installed libraries.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "parsimony/configs/config.h"
#include "parsimony/torch_io/prune.h"

int main() {
  torch::nn::Sequential model(torch::nn::Linear(8, 16), torch::nn::Linear(16, 4));
  parsimony::prune(model, at::rand({1, 8}),
                   parsimony::from_shorthand({.criterion = "l1", .ratio = 0.5}));
  return model[0]->as<torch::nn::Linear>()->weight.size(0) == 8 ? 0 : 1;
}
