#include "parsimony/torch_io/machine/threads.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "parsimony/engines/errors.h"
#include "parsimony/engines/machine/blas.h"
#include "parsimony/engines/machine/processor.h"

namespace parsimony::torch_io {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBudget = 0.25;  // seconds
constexpr int kRepeats = 4;
constexpr double kWorthMore = 0.95;  // a thread more must save a twentieth
constexpr double kNotAgain = 5;
constexpr double kHopeless = 1.5;  // times the best: what has more threads is not tried

double elapsed(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<int> candidates(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(std::max(1, most));
  return counts;
}

/// Without those of OpenBLAS: its POSIX threads would spin beside OpenMP's. ATen forgets oneDNN's
/// kernels whenever it is told a number.
void set_threads(int count) {
  if (at::get_num_threads() != count) at::set_num_threads(count);
  machine::set_own_threads(nullptr, 1);
}

}  // namespace

std::vector<machine::ThreadTime> time_threads(int most) {
  const int before = at::get_num_threads();
  const auto begin = Clock::now();
  const std::vector<int> counts = candidates(most);
  std::vector<machine::ThreadTime> times;
  TrainingStep step({.batch = 16});
  at::set_num_threads(1);
  step.run();  // makes gradients and kernels
  double best = 0;
  for (const int count : counts) {
    if (!times.empty() && elapsed(begin) > kBudget) break;
    at::set_num_threads(count);
    const double left = (kBudget - elapsed(begin)) / static_cast<double>(counts.size());
    // The first step makes threads, and oneDNN's kernels for this many of them; but beside other
    // programs, spinning threads can make it so slow that a second one is not worth the wait.
    double seconds = quickest(step, 1);
    const int repeats = seconds > kNotAgain * best && best > 0 ? 1 : kRepeats;
    for (int i = 1; i < repeats && (i == 1 || seconds * i < left); ++i) {
      seconds = std::min(seconds, quickest(step, 1));
    }
    times.push_back({count, seconds});
    best = times.size() == 1 ? seconds : std::min(best, seconds);
    if (seconds > kHopeless * best) break;
  }
  at::set_num_threads(before);
  return times;
}

int best_of(const std::vector<machine::ThreadTime>& times) {
  machine::ThreadTime best = times.empty() ? machine::ThreadTime{} : times.front();
  for (const machine::ThreadTime& time : times) {
    if (time.seconds < kWorthMore * best.seconds) best = time;
  }
  return best.threads;
}

namespace {

std::atomic<int> cores = 0;  // 0: not said yet

void check_threads(int count) {
  if (count < 1) throw machine::errors::bad_threads(std::to_string(count));
}

}  // namespace

int cores_to_use() { return cores > 0 ? cores.load() : at::get_num_threads(); }

int use_cores(std::optional<int> wanted) {
  if (wanted) check_threads(*wanted);
  cores = wanted ? *wanted : machine::these_cores().usable();
  set_threads(1);
  return cores;
}

int choose_threads(std::optional<int> wanted) {
  if (wanted) {
    check_threads(*wanted);
    set_threads(*wanted);
    return *wanted;
  }
  static const int measured = [] {
    const int most = machine::these_cores().usable();
    if (most == 1) return 1;
    set_threads(1);
    return best_of(time_threads(most));
  }();
  set_threads(measured);
  return measured;
}

namespace {

/// Weights as long as 1/√inputs, so that numbers stay of ordinary size. `seed` fills them without
/// a random generator: that of the user's process is not ours to advance.
at::Tensor waves(at::IntArrayRef sizes, double scale, double seed) {
  const int64_t count = c10::multiply_integers(sizes);
  return at::arange(count, at::kFloat).mul_(seed).sin_().mul_(scale).view(sizes);
}

at::Tensor weight(at::IntArrayRef sizes, double seed) {
  const int64_t inputs = c10::multiply_integers(sizes.slice(1));
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
    const auto begin = Clock::now();
    step.run();
    best = std::min(best, elapsed(begin));
  }
  return best;
}

}  // namespace parsimony::torch_io
