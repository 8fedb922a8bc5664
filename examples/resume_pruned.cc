// Saves a pruned network and loads it again: shapes come from the plan, weights from the file.
#include <ATen/core/grad_mode.h>
#include <parsimony/torch_io/prune.h>
#include <torch/serialize.h>

#include <cstdio>

#include "models/resnet.h"

namespace {

examples::ResNet make_network() {
  return examples::ResNet(examples::ResNetOptions{.width = 16, .classes = 10});
}

int64_t count_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

at::Tensor run(examples::ResNet& model, const at::Tensor& images) {
  const torch::NoGradGuard no_grad;
  model->eval();
  return model->forward(images);
}

at::Tensor prune_and_save(const at::Tensor& images) {
  examples::ResNet model = make_network();
  const auto config = parsimony::from_shorthand({.criterion = "l2", .ratio = 0.5});
  const auto pruned = parsimony::prune(model, torch::rand({1, 3, 64, 64}), config);
  torch::save(model, "small.pt");
  pruned.plan.save("small.plan.json");
  return run(model, images);
}

}  // namespace

int main() {
  torch::manual_seed(1);
  const at::Tensor images = torch::rand({4, 3, 64, 64});
  const at::Tensor saved = prune_and_save(images);

  examples::ResNet model = make_network();
  const int64_t full = count_parameters(*model);
  parsimony::restore(*model, "small.plan.json");
  torch::load(model, "small.pt");

  const int64_t left = count_parameters(*model);
  const bool same = at::equal(run(model, images), saved);
  std::printf("%lld of %lld parameters; outputs are %s\n", static_cast<long long>(left),
              static_cast<long long>(full), same ? "the same" : "different");
  return same && left < full ? 0 : 1;
}
