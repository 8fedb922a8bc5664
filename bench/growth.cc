// Growth: ten times the nodes may take twelve times the time, from reading to writing.
#include <algorithm>
#include <limits>

#include "bench/support/limits.h"
#include "bench/support/models.h"
#include "bench/support/pipeline.h"
#include "bench/support/process.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/report/explain.h"
#include "parsimony/report/inspect.h"

namespace parsimony::bench {
namespace {

constexpr double kMostGrowth = 12;

std::string model_of(const Folder& folder, Family family, int nodes) {
  const std::string path = folder / "in.onnx";
  in_child([&] { save(network(family, nodes), path); });
  return path;
}

/// Least processor time of several runs: fewer where one run is long.
template <typename Work>
double least_cpu(const Work& work) {
  double best = std::numeric_limits<double>::max();
  double spent = 0;
  for (int i = 0; i < 5 || (i < 30 && spent < 1.0); ++i) {
    const Clock clock;
    work();
    best = std::min(best, clock.cpu());
    spent += clock.cpu();
  }
  return best;
}

/// Runs `work(path)` on a network of the size that the benchmark is given, and on its tenth.
template <typename Work>
void growth(benchmark::State& state, Family family, int nodes, const Work& work) {
  for (auto _ : state) {
    const Folder folder;
    const std::string small = model_of(folder, family, nodes / 10);
    const double tenth = least_cpu([&] { work(small, folder / "out.onnx"); });
    const std::string large = model_of(folder, family, nodes);
    const double whole = least_cpu([&] { work(large, folder / "out.onnx"); });
    state.SetIterationTime(whole);
    state.counters["tenth ms"] = 1e3 * tenth;
    state.counters["ms"] = 1e3 * whole;
    must_reach(state, whole / tenth, kMostGrowth, "times");
  }
}

void explain_and_inspect(const std::string& path) {
  const onnx_io::ModelFile file(path);
  Graph graph = onnx_io::to_graph(file);
  const Analysis analysis = analyse(graph);
  benchmark::DoNotOptimize(to_text(explain(graph, analysis.coupling)));
  benchmark::DoNotOptimize(to_text(inspect(graph, analysis.facts, analysis.coupling)));
  benchmark::DoNotOptimize(to_dot(graph, analysis.facts, analysis.coupling));
}

void add(const std::string& what, Family family, int nodes,
         const std::function<void(const std::string&, const std::string&)>& work) {
  const std::string name = what + "/" + std::string(name_of(family)) + "/" + std::to_string(nodes);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { growth(state, family, nodes, work); })
      ->Iterations(1)
      ->UseManualTime();
}

void add_all() {
  for (const Family family :
       {Family::kChain, Family::kResidual, Family::kDense, Family::kAttention, Family::kListed}) {
    for (const int nodes : {2000, 20000}) {
      add("local", family, nodes,
          [](const auto& in, const auto& out) { prune(in, out, {.ratio = 0.5}); });
      add("global_macs", family, nodes, [](const auto& in, const auto& out) {
        prune(in, out, {.ratio = 0.5, .scope = "global", .budget = "macs"});
      });
      add("level", family, nodes, [](const auto& in, const auto& out) {
        prune(in, out, {.criterion = "level", .ratio = 0.5});
      });
      add("explain", family, nodes, [](const auto& in, const auto&) { explain_and_inspect(in); });
    }
  }
}

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) {
  parsimony::bench::add_all();
  return parsimony::bench::run_benchmarks(argc, argv);
}
