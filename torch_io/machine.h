// This machine: the number of ATen threads, for reproducible results or for speed; its performance,
// examined.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/engines/machine/report.h"

namespace parsimony::torch_io {

/// Runs a small training step with 1, 2, 4, … and `most` threads; stops when more threads are
/// slower. Takes about 0.3 s, longer on an overloaded machine. ATen's number of threads is
/// restored.
std::vector<machine::ThreadTime> time_threads(int most);

/// Returns the fastest; fewer threads if more hardly help.
int best_of(const std::vector<machine::ThreadTime>& times);

/// Makes results reproducible: every operator runs on one thread, since the summation order of
/// oneDNN, BLAS and ATen kernels depends on the number of threads. Up to `requested` cores, all by
/// default, are used for parallel work.
/// @returns their number. @throws ConfigError if `requested` is not positive
int use_cores(std::optional<int> requested = {});

/// Returns the number of cores that this process's networks may use. Before use_cores: ATen's
/// number of threads.
int cores_to_use();

/// For benchmarks: sets the number of threads that ATen and OpenMP use in this thread. Without
/// `requested` it is measured on the first call in a process; at most the number of cores.
/// @returns the number set. @throws ConfigError if `requested` is not positive
int choose_threads(std::optional<int> requested = {});

/// A small network for 32×32 images: two convolutions 3×3 with ReLU and pooling, two linear layers.
struct StepSize {
  int64_t batch = 64;
  int64_t channels = 32;  ///< of the first convolution; the second has twice as many
  int64_t hidden = 512;   ///< outputs of the first linear layer; the second has 10
  bool channels_last = false;
};

/// One step of forward, cross-entropy, backward and plain SGD on random images.
///
///     TrainingStep step({.batch = 16});
///     step.run();  // the first one creates gradients and oneDNN kernels
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

/// Returns the seconds of the fastest of `repeats` steps.
double quickest(TrainingStep& step, int repeats);

/// Examines the processor, threads, libtorch and allocator of this process, measures their
/// performance and gives advice. Takes about a second; settings are restored afterwards.
///
///     for (const auto& finding : parsimony::torch_io::examine().findings)
///       std::cerr << finding.subject << ": " << finding.advice << "\n";
machine::MachineReport examine();

}  // namespace parsimony::torch_io
