// How far the stages are from what the machine allows: memory that is copied or read once.
//
// Yardsticks and stages take turns in one process; times are of this thread's processor time, the
// least of all turns.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <string>

#include "bench/support/limits.h"
#include "bench/support/loops.h"
#include "bench/support/models.h"
#include "bench/support/pipeline.h"
#include "bench/support/process.h"
#include "bench/support/stages.h"
#include "bench/support/yardstick.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::bench {
namespace {

constexpr int kTurns = 20;
constexpr double kNever = std::numeric_limits<double>::max();

Yardstick& yardstick() {
  static Yardstick only;
  return only;
}

double seconds_per_byte(double least) { return least / static_cast<double>(Yardstick::kBytes); }

struct Leasts {
  double copy = kNever;
  double read = kNever;
  std::map<std::string, double, std::less<>> stages;

  void take() {
    copy = std::min(copy, yardstick().measure(Bound::kCopy));
    read = std::min(read, yardstick().measure(Bound::kRead));
  }
  void add(std::string_view stage, double cpu) {
    double& least = stages.emplace(stage, kNever).first->second;
    least = std::min(least, cpu);
  }
};

void large_network(benchmark::State& state, const std::vector<std::string>& of, Bound bound,
                   double limit) {
  const Folder folder;
  const std::string in = folder / "in.onnx";
  const std::string out = folder / "out.onnx";
  in_child([&] { save(resnet50(), in); });
  Leasts leasts;
  for (auto _ : state) {
    leasts.take();
    for (const StageCost& cost : run_stages(in, out)) leasts.add(cost.stage, cost.cpu);
  }
  double seconds = 0;
  double bytes = 0;
  for (const std::string& stage : of) {
    seconds += leasts.stages.at(stage);
    bytes += static_cast<double>(std::filesystem::file_size(stage == "write" ? out : in));
  }
  const double unit = seconds_per_byte(bound == Bound::kCopy ? leasts.copy : leasts.read);
  state.counters["ms"] = 1e3 * seconds;
  state.counters["GB/s"] = 1e-9 * bytes / seconds;
  state.counters["yardstick GB/s"] = 1e-9 / unit;
  must_reach(state, seconds / (bytes * unit), limit, "times");
}

void read_and_write(benchmark::State& state) {
  large_network(state, {"read", "write"}, Bound::kCopy, 3);
}
BENCHMARK(read_and_write)->Iterations(kTurns);

void read(benchmark::State& state) { large_network(state, {"read"}, Bound::kCopy, 3); }
BENCHMARK(read)->Iterations(kTurns);

void edit(benchmark::State& state) { large_network(state, {"edit"}, Bound::kCopy, 3); }
BENCHMARK(edit)->Iterations(kTurns);

void write(benchmark::State& state) { large_network(state, {"write"}, Bound::kCopy, 3); }
BENCHMARK(write)->Iterations(kTurns);

void search_for_nan(benchmark::State& state) {
  large_network(state, {"weights"}, Bound::kRead, 1.5);
}
BENCHMARK(search_for_nan)->Iterations(kTurns);

void score(benchmark::State& state) { large_network(state, {"score"}, Bound::kRead, 1.5); }
BENCHMARK(score)->Iterations(kTurns);

int64_t members_of(const Coupling& coupling) {
  int64_t members = 0;
  for (const Group& group : coupling.groups) {
    members += static_cast<int64_t>(group.members.size());
  }
  return members;
}

void couple_network(benchmark::State& state, Family family, int nodes) {
  const Folder folder;
  const std::string path = folder / "in.onnx";
  in_child([&] { save(network(family, nodes), path); });
  const onnx_io::ModelFile file(path);
  Graph graph = onnx_io::to_graph(file);
  const Analysis analysis = analyse(graph);
  double least = kNever;
  for (auto _ : state) {
    const Clock clock;
    benchmark::DoNotOptimize(couple(graph, analysis.facts));
    least = std::min(least, clock.cpu());
  }
  const auto count = static_cast<double>(graph.nodes.size());
  const auto members = static_cast<double>(members_of(analysis.coupling));
  state.counters["nodes"] = count;
  state.counters["members"] = members;
  state.counters["ms"] = 1e3 * least;
  state.counters["us/node"] = 1e6 * least / count;
  must_reach(state, 1e6 * least / (count + members), 1, "us");
}

void add_couplings() {
  for (const Family family :
       {Family::kChain, Family::kResidual, Family::kDense, Family::kAttention}) {
    for (const int nodes : {200, 2000, 20000}) {
      const std::string name =
          "couple/" + std::string(name_of(family)) + "/" + std::to_string(nodes);
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        couple_network(state, family, nodes);
      })->Iterations(kTurns);
    }
  }
}

void inner_loop(benchmark::State& state, const Loop& loop) {
  double least = kNever;
  Leasts leasts;
  for (auto _ : state) {
    leasts.take();
    const Clock clock;
    loop.run();
    least = std::min(least, clock.cpu());
  }
  const double unit = seconds_per_byte(loop.bound == Bound::kCopy ? leasts.copy : leasts.read);
  state.counters["GB/s"] = 1e-9 * loop.bytes / least;
  state.counters["yardstick GB/s"] = 1e-9 / unit;
  must_reach(state, least / (loop.bytes * unit), 2, "times");
}

void add_loops() {
  for (const Loop& each : inner_loops()) {
    if (each.bytes == 0) continue;
    benchmark::RegisterBenchmark(("loop/" + each.name).c_str(), [each](benchmark::State& state) {
      inner_loop(state, each);
    })->Iterations(kTurns);
  }
}

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) {
  parsimony::bench::add_couplings();
  parsimony::bench::add_loops();
  return parsimony::bench::run_benchmarks(argc, argv);
}
