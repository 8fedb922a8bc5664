#include "parsimony/torch_io/machine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "parsimony/engines/errors.h"
#include "parsimony/engines/machine/processor.h"

namespace parsimony::torch_io {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBudget = 0.25;  // seconds
constexpr int kRepeats = 4;
constexpr double kWorthMore = 0.95;  // an additional thread must save a twentieth
constexpr double kNotAgain = 5;
constexpr double kHopeless = 1.5;  // times the best: more threads are not tried

double elapsed(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<int> candidates(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(std::max(1, most));
  return counts;
}

/// ATen clears oneDNN's kernels whenever the number is set.
void set_threads(int count) {
  if (at::get_num_threads() != count) at::set_num_threads(count);
}

}  // namespace

std::vector<machine::ThreadTime> time_threads(int most) {
  const int before = at::get_num_threads();
  const auto begin = Clock::now();
  const std::vector<int> counts = candidates(most);
  std::vector<machine::ThreadTime> times;
  TrainingStep step({.batch = 16});
  at::set_num_threads(1);
  step.run();  // creates gradients and kernels
  double best = 0;
  for (const int count : counts) {
    if (!times.empty() && elapsed(begin) > kBudget) break;
    at::set_num_threads(count);
    const double left = (kBudget - elapsed(begin)) / static_cast<double>(counts.size());
    // The first step creates threads, and oneDNN's kernels for this many; but next to other
    // programs, spinning threads can make it so slow that a second one takes too long.
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

std::atomic<int> cores = 0;  // 0: not set yet

void check_threads(int count) {
  if (count < 1) throw machine::errors::bad_threads(std::to_string(count));
}

}  // namespace

int cores_to_use() { return cores > 0 ? cores.load() : at::get_num_threads(); }

int use_cores(std::optional<int> requested) {
  if (requested) check_threads(*requested);
  cores = requested ? *requested : machine::these_cores().usable();
  set_threads(1);
  return cores;
}

int choose_threads(std::optional<int> requested) {
  if (requested) {
    check_threads(*requested);
    set_threads(*requested);
    return *requested;
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

/// Fills weights of norm 1/√inputs, so that values keep their magnitude. `seed` replaces a random
/// generator, since the user's process's must not advance.
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

namespace {

/// Returns the seconds of the fastest run within 60 ms; at least one, after one to warm up.
double quickest_of(const std::function<void()>& work) {
  constexpr double kMostSeconds = 0.06;
  constexpr int kMost = 20;
  work();
  const auto begin = Clock::now();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i == 0 || (i < kMost && elapsed(begin) < kMostSeconds); ++i) {
    const auto start = Clock::now();
    work();
    best = std::min(best, elapsed(start));
  }
  return best;
}

/// Uses one thread during its lifetime.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

double product_gflops() {
  constexpr int64_t kSize = 384;  // 0.2 s with the reference BLAS
  const at::Tensor a = at::ones({kSize, kSize});
  at::Tensor c = at::empty({kSize, kSize});
  const double seconds = quickest_of([&] { at::mm_out(c, a, a); });
  return 2e-9 * static_cast<double>(kSize * kSize * kSize) / seconds;
}

/// Uses oneDNN, whatever ATen would choose.
double convolution_gflops() {
  if (!at::hasMKLDNN()) return 0;
  constexpr int64_t kBatch = 4;
  constexpr int64_t kChannels = 64;
  constexpr int64_t kSide = 28;
  const at::Tensor x = at::ones({kBatch, kChannels, kSide, kSide});
  const at::Tensor w = at::ones({kChannels, kChannels, 3, 3});
  const double seconds = quickest_of([&] {
    at::mkldnn_convolution(x, w, {}, {1, 1}, {1, 1}, {1, 1}, 1);
  });
  return 2e-9 * static_cast<double>(kBatch * kSide * kSide * kChannels * kChannels * 9) / seconds;
}

/// Returns the system's time for a page that is touched for the first time.
double seconds_per_fault() {
  constexpr size_t kBytes = size_t{4} << 20;
  const size_t page = sysconf(_SC_PAGESIZE);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    madvise(memory, kBytes, MADV_NOHUGEPAGE);  // may be unsupported, and pages larger then
    const auto begin = Clock::now();
    for (size_t at = 0; at < kBytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
    best = std::min(best, elapsed(begin));
    munmap(memory, kBytes);
  }
  return best * static_cast<double>(page) / static_cast<double>(kBytes);
}

int64_t faults_so_far() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// "... CPU capability usage: AVX2 ..." → "AVX2"
std::string capability() {
  const std::string text = at::show_config();
  const std::string key = "CPU capability usage: ";
  const size_t at = text.find(key);
  if (at == std::string::npos) return "unknown";
  const size_t begin = at + key.size();
  const std::string word = text.substr(begin, text.find_first_of(" \n", begin) - begin);
  return word == "NO AVX" || word == "NO" ? "DEFAULT" : word;
}

int openmp_threads() {
  auto* function = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return function == nullptr ? 0 : function();
}

/// Measures the process as it is.
void measure_step(machine::TorchFacts& facts) {
  TrainingStep step({.batch = 16});
  quickest(step, 2);  // after that allocators know the sizes
  int steps = 0;
  const int64_t before = faults_so_far();
  facts.seconds_with_aten_threads = quickest_of([&] {
    ++steps;
    step.run();
  });
  facts.faults_per_step = static_cast<double>(faults_so_far() - before) / steps;
  facts.seconds_per_fault = seconds_per_fault();
}

}  // namespace

machine::MachineReport examine() {
  const auto begin = Clock::now();
  machine::MachineReport report = machine::facts();
  machine::TorchFacts facts;
  facts.version = TORCH_VERSION;
  facts.capability = capability();
  facts.onednn = at::hasMKLDNN();
  facts.aten_threads = at::get_num_threads();
  facts.openmp_threads = openmp_threads();
  measure_step(facts);
  {
    const OneThread one_thread;
    const at::NoGradGuard no_grad;
    facts.product_gflops = product_gflops();
    facts.convolution_gflops = convolution_gflops();
  }
  {
    const OneThread one_thread;
    facts.steps = time_threads(report.cores.usable());
    facts.best_threads = best_of(facts.steps);
  }
  report.torch = std::move(facts);
  advise(report);
  report.seconds = elapsed(begin);
  return report;
}

}  // namespace parsimony::torch_io
