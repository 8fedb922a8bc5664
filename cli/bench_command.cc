#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/base/words.h"
#include "parsimony/cli/bench_latency.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

struct BenchTrainingOptions {
  std::string model;  ///< empty: nothing is trained
  std::string data;
  std::string optimizer;
};

using Json = nlohmann::ordered_json;

std::string milliseconds(double seconds) { return formatted("%.2f", 1e3 * seconds); }

std::string spread(const machine::Summary& time) {
  return milliseconds(time.low) + ".." + milliseconds(time.high);
}

/// The share of a training step that is spent waiting for the loader.
double share_of_pipeline(const TrainBenchRow& row) {
  return std::max(0.0, 1 - row.cached.median / row.pipeline.median);
}

const TrainBenchRow* quickest(const std::vector<TrainBenchRow>& rows) {
  const TrainBenchRow* best = nullptr;
  for (const TrainBenchRow& row : rows) {
    if (!row.refused.empty()) continue;
    if (best == nullptr || row.pipeline.median < best->pipeline.median) best = &row;
  }
  return best;
}

std::string to_text(const std::vector<TrainBenchRow>& rows, int64_t batch) {
  using enum Table::Align;
  Table table({"memory format", "precision", "cached ms", "quartiles", "pipeline ms", "quartiles",
               "samples/s", "pipeline"},
              {kLeft, kLeft, kRight, kRight, kRight, kRight, kRight, kRight});
  std::string refused;
  for (const TrainBenchRow& row : rows) {
    if (!row.refused.empty()) {
      refused += "note: " + row.memory_format + ", " + row.precision + ": " +
                 printable(row.refused) + "\n";
      continue;
    }
    const double rate = static_cast<double>(batch) / row.pipeline.median;
    table.add({row.memory_format, row.precision, milliseconds(row.cached.median),
               spread(row.cached), milliseconds(row.pipeline.median), spread(row.pipeline),
               with_thousands(static_cast<int64_t>(rate)),
               formatted("%.1f%%", 100 * share_of_pipeline(row))});
  }
  const TrainBenchRow& best = *quickest(rows);
  return table.text() + refused +
         "One training step, measured interleaved. Cached: the same batch every time, the model's "
         "own limit; pipeline: batches\nfrom the loader, and the share of time that this adds. "
         "Fastest: --memory-format " +
         best.memory_format + " --precision " + best.precision + "\n";
}

Json to_json(const machine::Summary& time) {
  return {{"median", time.median}, {"low", time.low}, {"high", time.high}, {"runs", time.runs}};
}

std::string to_json(const std::vector<TrainBenchRow>& rows, const TrainBenchRequest& request,
                    int threads) {
  Json json;
  json["parsimony_bench_training"] = 1;
  json["command"] = request.command;
  json["model"] = request.recipe.model;
  json["data"] = request.recipe.data;
  json["batch"] = request.recipe.train.batch;
  json["threads"] = threads;
  json["rows"] = Json::array();
  for (const TrainBenchRow& row : rows) {
    Json& entry = json["rows"].emplace_back(
        Json{{"memory_format", row.memory_format}, {"precision", row.precision}});
    if (!row.refused.empty()) {
      entry["refused"] = row.refused;
      continue;
    }
    entry["cached_seconds"] = to_json(row.cached);
    entry["pipeline_seconds"] = to_json(row.pipeline);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void add_options(CLI::App& command, BenchTrainingOptions& options) {
  add_option(command, "--train", options.model, "NAME",
             "Measure training steps of this network instead, by memory format and precision");
  add_option(command, "--data", options.data, "SPEC",
             "With --train: the training data (default: shapes)");
  add_option(command, "--optimizer", options.optimizer, "WORD",
             "With --train: sgd, adam, adamw or muon (default: adam)");
}

/// Batch, threads, seconds and JSON are shared with the latency benchmark.
/// @throws ConfigError; UnsupportedError if nothing could be run
void bench_training(const BenchTrainingOptions& options, const LatencyOptions& shared,
                    const Session& session) {
  if (!shared.models.empty())
    throw errors::usage("bench", "--train cannot be combined with other models");
  check_outputs({{"--json", shared.json}}, {});
  TrainBenchRequest request;
  request.recipe.model = options.model;
  request.recipe.data = options.data.empty() ? "shapes" : options.data;
  if (!options.optimizer.empty()) {
    request.recipe.train.optimizer = parse_optimizer(options.optimizer, "--optimizer");
  }
  const auto batches = parse_batches(shared.batches);
  if (batches.size() > 1) throw errors::usage("bench", "--train requires a single --batch");
  if (batches[0]) request.recipe.train.batch = static_cast<int>(*batches[0]);
  request.threads = shared.threads;
  request.rounds = shared.rounds;
  request.command = session.command_line;
  Progress progress({}, !session.quiet);
  progress.begin("measuring training steps");
  const int threads = torch_component().choose_threads(request.threads);
  const std::vector<TrainBenchRow> rows = torch_commands().bench_training(request);
  progress.finish();
  if (quickest(rows) == nullptr) {
    std::vector<std::string> reasons;
    for (const TrainBenchRow& row : rows) reasons.push_back(row.memory_format + ": " + row.refused);
    throw errors::nothing_runs(reasons);
  }
  if (!shared.json.empty()) write_file(shared.json, to_json(rows, request, threads));
  print(to_text(rows, request.recipe.train.batch) + counted(threads, "thread") + ".\n");
}

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
      app, session, "bench", "Compares latency, throughput and speedup of models",
      "parsimony bench resnet.onnx small.onnx --batch 1,64", add_options, run_bench);
}

}  // namespace parsimony::cli
