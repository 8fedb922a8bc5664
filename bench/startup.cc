// What commands cost before they do anything: `parsimony` on a small model against `true`, in turn.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "bench/support/limits.h"
#include "bench/support/models.h"
#include "bench/support/process.h"

namespace parsimony::bench {
namespace {

constexpr int kRepeats = 30;
constexpr double kLimit = 50;  // ms

/// The model's work is in it: with so few nodes it is less than a millisecond.
void measure(benchmark::State& state, const std::vector<std::string>& arguments) {
  double ours = std::numeric_limits<double>::infinity();
  double nothing = ours;
  for (auto _ : state) {
    nothing = std::min(nothing, run({"/bin/true"}).seconds);
    const Run now = run(arguments);
    ours = std::min(ours, now.seconds);
    state.SetIterationTime(now.seconds);
  }
  state.counters["ms"] = 1e3 * ours;
  state.counters["true ms"] = 1e3 * nothing;
  must_reach(state, 1e3 * (ours - nothing), kLimit, "ms");
}

void start_help(benchmark::State& state) { measure(state, {parsimony_command(), "--help"}); }
BENCHMARK(start_help)->Iterations(kRepeats)->UseManualTime();

void start_inspect(benchmark::State& state) {
  const Folder folder;
  save(network(Family::kChain, 10), folder / "in.onnx");
  measure(state, {parsimony_command(), "inspect", folder / "in.onnx"});
}
BENCHMARK(start_inspect)->Iterations(kRepeats)->UseManualTime();

void start_prune_without_proof(benchmark::State& state) {
  const Folder folder;
  save(network(Family::kChain, 10), folder / "in.onnx");
  measure(state, {parsimony_command(), "prune", folder / "in.onnx", "-o", folder / "out.onnx",
                  "--ratio", "0.5", "--no-verify"});
}
BENCHMARK(start_prune_without_proof)->Iterations(kRepeats)->UseManualTime();

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) { return parsimony::bench::run_benchmarks(argc, argv); }
