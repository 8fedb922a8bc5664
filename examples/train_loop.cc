// Prunes a network during training, which continues with the same module and optimizer.
#include <ATen/core/grad_mode.h>
#include <parsimony/torch_io/prune.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>

#include <cstdio>

#include "models/cifar_cnn.h"

namespace {

struct Batch {
  at::Tensor images;  ///< [n, 3, 32, 32]
  at::Tensor labels;  ///< [n]
};

/// Ten coarse patterns in noise.
class Patterns {
 public:
  Batch draw(int64_t n) const {
    const at::Tensor labels = at::randint(10, {n}, at::kLong);
    const at::Tensor clean = patterns_.index_select(0, labels);
    return {clean + 2 * at::randn_like(clean), labels};
  }

 private:
  at::Tensor patterns_ = at::randn({10, 3, 8, 8}).repeat_interleave(4, 2).repeat_interleave(4, 3);
};

at::Tensor loss_of(examples::CifarCnn& model, const Batch& batch) {
  return torch::nn::functional::cross_entropy(model->forward(batch.images), batch.labels);
}

void train(examples::CifarCnn& model, torch::optim::Optimizer& optimizer, const Patterns& patterns,
           int steps) {
  model->train();
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    loss_of(model, patterns.draw(32)).backward();
    optimizer.step();
  }
}

double evaluate(examples::CifarCnn& model, const Batch& unseen) {
  const torch::NoGradGuard no_grad;
  model->eval();
  return loss_of(model, unseen).item<double>();
}

void print(const char* when, const parsimony::Cost& cost, double loss) {
  std::printf("%-24s %9lld parameters %11lld MACs   loss %.3f\n", when,
              static_cast<long long>(cost.params), static_cast<long long>(cost.macs), loss);
}

}  // namespace

int main() {
  torch::manual_seed(1);
  const Patterns patterns;
  const Batch unseen = patterns.draw(256);

  examples::CifarCnn model(examples::CifarCnnOptions{.width = 16, .hidden = 128});
  torch::optim::Adam optimizer(model->parameters(), 1e-3);
  train(model, optimizer, patterns, 40);
  const double dense = evaluate(model, unseen);

  const auto config = parsimony::from_shorthand({.criterion = "l1", .ratio = 0.5});
  const auto plan = parsimony::prune(model, torch::rand({1, 3, 32, 32}), config);
  parsimony::carry_over(optimizer, plan);
  const double pruned = evaluate(model, unseen);

  train(model, optimizer, patterns, 40);
  const double small = evaluate(model, unseen);

  print("warmed up", plan.dense, dense);
  print("pruned", plan.small, pruned);
  print("trained on", plan.small, small);
  const bool holds = small < dense && 2 * plan.small.macs < plan.dense.macs;
  if (!holds) std::puts("half of the channels should reach the same loss after as much training");
  return holds ? 0 : 1;
}
