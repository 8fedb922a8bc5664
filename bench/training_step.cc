// A training step of a small CNN, batch 64, by threads and memory layout.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>

#include "parsimony/torch_io/machine.h"

namespace parsimony::bench {
namespace {

constexpr int kRepeats = 15;

void training_step(benchmark::State& state, bool channels_last) {
  at::set_num_threads(static_cast<int>(state.range(0)));
  torch_io::TrainingStep step({.channels_last = channels_last});
  torch_io::quickest(step, 2);
  double best = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const double seconds = torch_io::quickest(step, 1);
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  state.counters["best ms"] = 1e3 * best;
}
BENCHMARK_CAPTURE(training_step, contiguous, false)
    ->DenseRange(1, 2)
    ->Iterations(kRepeats)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training_step, channels_last, true)
    ->DenseRange(1, 2)
    ->Iterations(kRepeats)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace parsimony::bench

BENCHMARK_MAIN();
