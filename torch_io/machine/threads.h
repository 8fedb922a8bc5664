// How many threads ATen should use: measured, not guessed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/engines/machine/report.h"

namespace parsimony::torch_io {

/// Runs a small training step with 1, 2, 4, … and `most` threads; stops where more threads made it
/// slower. About 0.3 s, longer on an overloaded machine. ATen has its number as before afterwards.
std::vector<machine::ThreadTime> time_threads(int most);

/// The quickest; fewer threads where more hardly help.
int best_of(const std::vector<machine::ThreadTime>& times);

/// Sets the number of threads that ATen and OpenMP use in this thread, and keeps an OpenBLAS with
/// threads of its own from fighting with them. Without `wanted` a measurement decides, the first
/// time that it is called in a process; no more than the process has cores.
/// @returns the number that is set. @throws ConfigError if `wanted` is not positive
int choose_threads(std::optional<int> wanted = {});

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
