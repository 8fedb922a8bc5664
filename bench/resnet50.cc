// Time on a network of 100 MB: the stages between reading and writing, and the whole command
// against the least that any tool must do with such a file.
#include <algorithm>
#include <limits>
#include <memory>

#include "bench/support/limits.h"
#include "bench/support/models.h"
#include "bench/support/pipeline.h"
#include "bench/support/process.h"

namespace parsimony::bench {
namespace {

constexpr int kRepeats = 12;

/// The model, made once. In a process of its own, so that this one stays small.
class Model {
 public:
  Model() {
    in_child([this] { save(resnet50(), path()); });
  }
  std::string path() const { return folder_ / "resnet50.onnx"; }
  std::string output() const { return folder_ / "small.onnx"; }

  static const Model& get() {
    static const Model model;
    return model;
  }

 private:
  Folder folder_;
};

void command_against_reserialising(benchmark::State& state) {
  const Model& model = Model::get();
  const std::string reserialise =
      this_program().replace(this_program().rfind('/') + 1, std::string::npos, "bench_reserialise");
  Run least{1e9, 1e9, 0};
  Run ours{1e9, 1e9, 0};
  const auto improve = [](Run& best, const Run& now) {
    best.seconds = std::min(best.seconds, now.seconds);
    best.cpu_seconds = std::min(best.cpu_seconds, now.cpu_seconds);
  };
  for (auto _ : state) {
    // In turn, so that both meet the same disturbances.
    improve(least, run({reserialise, model.path(), model.output()}));
    const Run now = run({parsimony_command(), "prune", model.path(), "--no-verify", "-o",
                         model.output(), "--ratio", "0.5", "--quiet"});
    improve(ours, now);
    state.SetIterationTime(now.seconds);
  }
  state.counters["ms"] = 1e3 * ours.seconds;
  state.counters["cpu ms"] = 1e3 * ours.cpu_seconds;
  state.counters["reserialise ms"] = 1e3 * least.seconds;
  state.counters["reserialise cpu ms"] = 1e3 * least.cpu_seconds;
  must_reach(state, ours.seconds / least.seconds, 2.5, "times");
}
BENCHMARK(command_against_reserialising)->Iterations(kRepeats)->UseManualTime();

void stages_between_read_and_write(benchmark::State& state) {
  const Model& model = Model::get();
  double best = std::numeric_limits<double>::max();
  Passage of_best;
  for (auto _ : state) {
    Passage passage = prune(model.path(), model.output(), {.ratio = 0.5});
    state.SetIterationTime(passage.between_wall);
    if (passage.between_wall > best) continue;
    best = passage.between_wall;
    of_best = std::move(passage);
  }
  for (const StageTime& time : of_best.pruning.times) {
    state.counters[time.stage + " ms"] = 1e3 * time.seconds;
  }
  must_reach(state, 1e3 * best, 100, "ms");
}
BENCHMARK(stages_between_read_and_write)->Iterations(kRepeats)->UseManualTime();

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) { return parsimony::bench::run_benchmarks(argc, argv); }
