// Growth: ten times the nodes may take twelve times the time, from reading to writing. Every run is
// a process of its own, for a command starts with an empty heap and cold caches at either size.
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
constexpr int kRuns = 12;

std::string model_of(const Folder& folder, const std::string& name, Family family, int nodes) {
  const std::string path = folder / name;
  in_child([&] { save(network(family, nodes), path); });
  return path;
}

/// Runs `work(path)` on a network of the size that the benchmark is given, and on its tenth.
template <typename Work>
void growth(benchmark::State& state, Family family, int nodes, const Work& work) {
  for (auto _ : state) {
    const Folder folder;
    const std::string small = model_of(folder, "small.onnx", family, nodes / 10);
    const std::string large = model_of(folder, "large.onnx", family, nodes);
    // The least of equally many, in turn: what disturbs one size disturbs the other.
    double tenth = std::numeric_limits<double>::max();
    double whole = tenth;
    for (int i = 0; i < kRuns; ++i) {
      tenth = std::min(tenth, in_child([&] { work(small, folder / "out.onnx"); }));
      whole = std::min(whole, in_child([&] { work(large, folder / "out.onnx"); }));
    }
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
  benchmark::DoNotOptimize(to_text(explain(graph, analysis.facts, analysis.coupling)));
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
