// A training step to measure a machine with.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace parsimony::torch_io {

/// A small network for 32×32 images: two convolutions 3×3 with ReLU and pooling, two linear layers.
struct StepSize {
  int64_t batch = 64;
  int64_t channels = 32;  ///< of the first convolution; the second has twice as many
  int64_t hidden = 512;   ///< outputs of the first linear layer; the second has 10
  bool channels_last = false;
};

/// Forward, cross entropy, backward and a step of plain SGD on random images.
///
///     TrainingStep step({.batch = 16});
///     step.run();  // the first one makes gradients and oneDNN's kernels
///     step.run();
class TrainingStep {
 public:
  explicit TrainingStep(const StepSize& size);

  void run();

 private:
  at::Tensor images_;  ///< [batch, 3, 32, 32]
  at::Tensor labels_;  ///< [batch]
  std::vector<at::Tensor> weights_;
};

/// Seconds of the quickest of `repeats` steps.
double quickest(TrainingStep& step, int repeats);

}  // namespace parsimony::torch_io
