#include <memory>

#include "parsimony/cli/bench_latency.h"
#include "parsimony/cli/bench_training.h"
#include "parsimony/cli/command.h"

namespace parsimony::cli {

// Other kinds of benchmark define their options and work in separate files.
void add_bench(CLI::App& app, Session& session) {
  auto latency = std::make_shared<LatencyOptions>();
  CLI::App* command =
      add_command(app, "bench", "Measures models side by side: latency, throughput, speedup",
                  "parsimony bench resnet.onnx small.onnx --batch 1,64");
  add_options(*command, *latency);
  auto training = std::make_shared<BenchTrainingOptions>();
  add_options(*command, *training);
  command->callback([latency, training, &session] {
    session.run = [latency, training, &session] {
      if (training->model.empty()) return bench_latency(*latency, session);
      bench_training(*training, *latency, session);
    };
  });
}

}  // namespace parsimony::cli
