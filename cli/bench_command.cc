#include "parsimony/cli/bench_latency.h"
#include "parsimony/cli/bench_training.h"
#include "parsimony/cli/command.h"

namespace parsimony::cli {
namespace {

struct BenchOptions {
  LatencyOptions latency;
  BenchTrainingOptions training;
};

// Each kind of benchmark has a file with its options and its work.
void add_options(CLI::App& command, BenchOptions& options) {
  add_options(command, options.latency);
  add_options(command, options.training);
}

void run_bench(const BenchOptions& options, const Session& session) {
  if (options.training.model.empty()) return bench_latency(options.latency, session);
  bench_training(options.training, options.latency, session);
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  add_command<BenchOptions>(
      app, session, "bench", "Measures models side by side: latency, throughput, speedup",
      "parsimony bench resnet.onnx small.onnx --batch 1,64", add_options, run_bench);
}

}  // namespace parsimony::cli
