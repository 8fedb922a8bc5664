// Trains one network in several processes, and prunes it during training:
//
//     torchrun --no_python --nproc_per_node 2 example_train_replicas
//
// Run on its own, it is the only rank.
#include <parsimony/torch_io/prune.h>
#include <parsimony/training/ranks/replicas.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <optional>

#include "models/cifar_cnn.h"

namespace {

using parsimony::training::RankGroup;
using parsimony::training::Replicas;

constexpr int64_t kBatch = 32;

/// This rank's share of a batch, whose samples depend only on the step.
struct Share {
  Share(const RankGroup& ranks, int64_t step) {
    const auto generator = at::detail::createCPUGenerator(step);
    const int64_t begin = kBatch * ranks.rank() / ranks.size();
    const int64_t end = kBatch * (ranks.rank() + 1) / ranks.size();
    labels = at::randint(0, 10, {kBatch}, generator, at::kLong).slice(0, begin, end);
    const at::Tensor noise = at::randn({kBatch, 3, 32, 32}, generator).slice(0, begin, end);
    images = noise + labels.reshape({-1, 1, 1, 1}) / 2.0;
  }
  at::Tensor images;  ///< [n, 3, 32, 32]
  at::Tensor labels;  ///< [n]
};

}  // namespace

int main() {
  at::manual_seed(1);  // rank 0 sends its weights to the others
  const RankGroup ranks(parsimony::ranks_of_environment().value_or(parsimony::RankPlace()));
  examples::CifarCnn model(examples::CifarCnnOptions{.width = 16, .hidden = 128});
  torch::optim::Adam optimizer(model->parameters(), 1e-3);
  std::optional<Replicas> replicas(std::in_place, ranks, *model);
  int64_t dense = 0;
  double last = 0;
  for (int64_t step = 0; step < 60; ++step) {
    if (step == 30) {
      // The weights are the same everywhere, so every rank computes the same plan.
      replicas.reset();
      const auto config = parsimony::from_shorthand({.criterion = "l1", .ratio = 0.5});
      const auto plan = parsimony::prune(model, torch::rand({1, 3, 32, 32}), config);
      parsimony::carry_over(optimizer, plan);
      replicas.emplace(ranks, *model);
      dense = plan.dense.params;
    }
    const Share batch(ranks, step);
    const auto loss =
        torch::nn::functional::cross_entropy(model->forward(batch.images), batch.labels);
    replicas->backward(loss, batch.labels.size(0), kBatch);
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();
    const at::Tensor sum = loss.detach() * batch.labels.size(0) / kBatch;
    ranks.sum(sum);
    last = sum.item<double>();
    if (ranks.is_first() && step % 10 == 9) {
      std::printf("step %2lld: loss %.3f\n", static_cast<long long>(step + 1), last);
    }
  }
  int64_t small = 0;
  for (const at::Tensor& parameter : model->parameters()) small += parameter.numel();
  return last < 2 && 2 * small < dense + dense / 5 ? 0 : 1;
}
