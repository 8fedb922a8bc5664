#include "parsimony/torch_io/machine/training_step.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace parsimony::torch_io {
namespace {

/// Weights as long as 1/√inputs, so that numbers stay of ordinary size. `seed` fills them without
/// a random generator: that of the user's process is not ours to advance.
at::Tensor waves(at::IntArrayRef sizes, double scale, double seed) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::arange(count, at::kFloat).mul_(seed).sin_().mul_(scale).view(sizes);
}

at::Tensor weight(at::IntArrayRef sizes, double seed) {
  int64_t inputs = 1;
  for (const int64_t size : sizes.slice(1)) inputs *= size;
  return waves(sizes, 1 / std::sqrt(static_cast<double>(inputs)), seed);
}

}  // namespace

TrainingStep::TrainingStep(const StepSize& size) {
  const int64_t second = 2 * size.channels;
  images_ = waves({size.batch, 3, 32, 32}, 1, 0.61);
  labels_ = at::arange(size.batch, at::kLong).remainder(10);
  weights_ = {weight({size.channels, 3, 3, 3}, 0.71), weight({second, size.channels, 3, 3}, 0.73),
              weight({size.hidden, second * 64}, 0.79), weight({10, size.hidden}, 0.83)};
  if (size.channels_last) {
    images_ = images_.contiguous(at::MemoryFormat::ChannelsLast);
    for (at::Tensor& tensor : weights_) {
      if (tensor.dim() == 4) tensor = tensor.contiguous(at::MemoryFormat::ChannelsLast);
    }
  }
  for (at::Tensor& tensor : weights_) tensor.requires_grad_(true);
}

void TrainingStep::run() {
  const at::AutoGradMode gradients(true);
  at::Tensor x = images_;
  for (size_t layer = 0; layer < 2; ++layer) {
    x = at::max_pool2d(at::relu(at::conv2d(x, weights_[layer], {}, 1, 1)), 2);
  }
  x = at::relu(at::linear(x.flatten(1), weights_[2]));
  at::cross_entropy_loss(at::linear(x, weights_[3]), labels_).backward();
  const at::NoGradGuard no_grad;
  for (at::Tensor& tensor : weights_) {
    tensor.add_(tensor.grad(), -1e-3);
    tensor.mutable_grad().zero_();
  }
}

double quickest(TrainingStep& step, int repeats) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    step.run();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    best = std::min(best, passed.count());
  }
  return best;
}

}  // namespace parsimony::torch_io
