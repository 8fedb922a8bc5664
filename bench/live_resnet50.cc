// Pruning a live ResNet-50 with its optimizer: in all, and what is ours beside the trace.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "bench/support/limits.h"
#include "examples/models/resnet.h"
#include "parsimony/configs/config.h"
#include "parsimony/torch_io/prune.h"

namespace parsimony::bench {
namespace {

constexpr double kMostSeconds = 1.5;
constexpr double kMostOwnMs = 150;
constexpr int kRuns = 5;

template <typename Work>
double seconds(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Times {
  double whole = std::numeric_limits<double>::infinity();
  double trace = std::numeric_limits<double>::infinity();
};

/// Least of several: pruning and carrying the optimizer over, and tracing alone.
Times measure() {
  const at::Tensor x = at::rand({1, 3, 224, 224});
  PruneRequest half = from_shorthand({.criterion = "l1", .ratio = 0.5});
  half.verify = false;
  Times best;
  for (int i = 0; i < kRuns; ++i) {
    examples::ResNet net(examples::resnet50());
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    net->forward(x).sum().backward();
    optimizer.step();
    const auto run = [&](const std::vector<at::Tensor>& in) { return net->forward(in.at(0)); };
    best.trace = std::min(best.trace, seconds([&] { torch_io::traced(*net, run, {x}); }));
    best.whole = std::min(best.whole, seconds([&] { carry_over(optimizer, prune(net, x, half)); }));
  }
  return best;
}

void prune_live_resnet50(benchmark::State& state) {
  for (auto _ : state) {
    const Times times = measure();
    state.SetIterationTime(times.whole);
    state.counters["trace ms"] = 1e3 * times.trace;
    must_reach(state, times.whole, kMostSeconds, "s");
  }
}
BENCHMARK(prune_live_resnet50)->Iterations(1)->UseManualTime();

void ours_beside_the_trace(benchmark::State& state) {
  for (auto _ : state) {
    const Times times = measure();
    state.SetIterationTime(times.whole - times.trace);
    must_reach(state, 1e3 * (times.whole - times.trace), kMostOwnMs, "ms");
  }
}
BENCHMARK(ours_beside_the_trace)->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) { return parsimony::bench::run_benchmarks(argc, argv); }
