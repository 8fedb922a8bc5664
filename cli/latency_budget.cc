#include "parsimony/cli/latency_budget.h"

#include "parsimony/cli/validators.h"

namespace parsimony::cli {

void add_latency_options(CLI::App& command, LatencyBudgetOptions& options) {
  const std::string group = "With a budget of milliseconds";
  command
      .add_option("--engine", options.engine,
                  "What the network is to be quick on: libtorch (the default) or onnxruntime")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option("--onnxruntime", options.onnxruntime,
                  "Library of ONNX Runtime (PARSIMONY_ONNXRUNTIME, else where it is usually found)")
      ->type_name("PATH")
      ->group(group);
  command
      .add_option("--latency-table", options.table,
                  "Times of layers, read and added to (a file of the cache)")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--batch", options.batch, "Samples per run (1)")
      ->type_name("N")
      ->check(above_zero())
      ->group(group);
}

}  // namespace parsimony::cli
