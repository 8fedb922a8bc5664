#include "parsimony/torch_io/machine/examine.h"

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
#include <chrono>
#include <functional>
#include <limits>
#include <string>

#include "parsimony/torch_io/machine/threads.h"

namespace parsimony::torch_io {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The quickest of the runs that fit into 60 ms, in seconds; one at least, after one to warm up.
double quickest_of(const std::function<void()>& work) {
  constexpr double kBudget = 0.06;
  constexpr int kMost = 20;
  work();
  const auto begin = Clock::now();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i == 0 || (i < kMost && since(begin) < kBudget); ++i) {
    const auto start = Clock::now();
    work();
    best = std::min(best, since(start));
  }
  return best;
}

/// One thread while it lives.
class OneThread {
 public:
  OneThread() : aten_(at::get_num_threads()) {
    if (const auto blas = machine::blas_seen_from(nullptr)) blas_ = blas->threads;
    at::set_num_threads(1);
    machine::set_own_threads(nullptr, 1);
  }
  ~OneThread() {
    at::set_num_threads(aten_);
    if (blas_ > 0) machine::set_own_threads(nullptr, blas_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int aten_;
  int blas_ = 0;
};

double product_gflops() {
  constexpr int64_t kSize = 384;  // a fifth of a second with the reference BLAS
  const at::Tensor a = at::ones({kSize, kSize});
  at::Tensor c = at::empty({kSize, kSize});
  const double seconds = quickest_of([&] { at::mm_out(c, a, a); });
  return 2e-9 * static_cast<double>(kSize * kSize * kSize) / seconds;
}

/// By oneDNN, whatever ATen would choose.
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

/// What the system takes for a page that is touched for the first time.
double seconds_per_fault() {
  constexpr size_t kBytes = size_t{4} << 20;
  const size_t page = sysconf(_SC_PAGESIZE);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    madvise(memory, kBytes, MADV_NOHUGEPAGE);  // may be unknown, and the pages larger then
    const auto begin = Clock::now();
    for (size_t at = 0; at < kBytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
    best = std::min(best, since(begin));
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

/// As the process is, with OpenBLAS's own threads, if it has some.
void measure_step(machine::TorchFacts& facts) {
  TrainingStep step({.batch = 16});
  quickest(step, 2);  // by then allocators know the sizes
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
  machine::MachineReport report = machine::facts(nullptr);
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
  report.seconds = since(begin);
  return report;
}

}  // namespace parsimony::torch_io
