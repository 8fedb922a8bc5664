#include "parsimony/cli/bench_latency.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "parsimony/api/engines.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/latency/profiler.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/parse.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/sandbox.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/engines/machine/processor.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/report/bench.h"

namespace parsimony::cli {
namespace {

ConfigError bad_batch(std::string_view found) {
  return ConfigError("--batch: found ", in_quotes(found),
                     ", expected positive numbers, for example 1,64");
}

constexpr const char* kTorch = "libtorch";
constexpr const char* kOnnxRuntime = "onnxruntime";
constexpr const char* kAll = "all";

void check_name(const std::string& name) {
  const std::vector<std::string> known = {kTorch, kOnnxRuntime, kAll};
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw parsimony::errors::unknown_engine(name, known);
  }
}

/// Returns the number of threads: measured by libtorch, or one per processor without it.
int choose_threads(bool with_torch, std::optional<int> expected) {
  if (with_torch) return torch_component().choose_threads(expected);
  return expected.value_or(machine::these_cores().usable());
}

}  // namespace

void add_engine_options(CLI::App& command, EngineOptions& options, std::optional<int>& threads) {
  add_option(command, "--engine", options.engine, "NAME",
             "Engine: libtorch, onnxruntime or all (default: those that are found)");
  add_settings(command, onnx_runtime_settings(), options.onnxruntime);
  add_threads_option(command, threads);
}

Engines find_engines(const EngineOptions& options) {
  check_name(options.engine);
  const bool all = options.engine == kAll;
  const bool library_named =
      !options.onnxruntime.library.empty() || !environment("PARSIMONY_ONNXRUNTIME").empty();
  Engines engines;
  std::optional<runtime::OnnxRuntime> library;
  if (all || options.engine == kOnnxRuntime) {
    try {
      library = runtime::find_onnx_runtime(options.onnxruntime.library);
    } catch (const UnsupportedError& error) {
      if (!all || library_named) throw;
      engines.notes.emplace_back(error.what());
    }
  }
  bool with_torch = options.engine == kTorch;
  if (all) {
    try {
      torch_component();
      with_torch = true;
    } catch (const UnsupportedError& error) {
      if (!library) throw;
      engines.notes.emplace_back(error.what());
    }
  }
  engines.threads = choose_threads(with_torch, options.threads);
  if (with_torch)
    engines.found.push_back(std::make_unique<LazyTorch>(engines.threads, LazyTorch::For::kTimes));
  if (library)
    engines.found.push_back(onnx_runtime_engine(
        *library, {.threads = engines.threads, .provider = options.onnxruntime.provider}));
  return engines;
}

namespace {

namespace fs = std::filesystem;

using Batch = std::optional<int64_t>;

/// Returns file names as labels; paths if two files have the same name, numbered if those are equal
/// too.
std::vector<std::string> labels_of(const std::vector<std::string>& paths) {
  const auto name_of = [](const std::string& path) { return fs::path(path).filename().string(); };
  std::map<std::string, int> seen;
  std::vector<std::string> labels;
  for (const std::string& path : paths) {
    const bool alone = std::all_of(paths.begin(), paths.end(), [&](const std::string& other) {
      return other == path || name_of(other) != name_of(path);
    });
    std::string label = alone ? name_of(path) : path;
    const int before = seen[path]++;
    if (before > 0) label += " (" + std::to_string(before + 1) + ")";
    labels.push_back(std::move(label));
  }
  return labels;
}

struct Entrant {
  std::unique_ptr<EditableFile> model;
  std::vector<InputSpec> specs;
};

std::vector<Entrant> read_models(const LatencyOptions& options) {
  std::vector<Entrant> entrants;
  for (const std::string& path : options.models) {
    Entrant entrant{open_model(path, options.specs), {}};
    entrant.specs = input_specs(options.specs, entrant.model->graph());
    entrants.push_back(std::move(entrant));
  }
  return entrants;
}

/// A model opened by an engine and ready to run, or the reason why it is not.
struct Candidate {
  Network* network = nullptr;  ///< with inputs bound
  BenchRow row;

  machine::Work work() {
    return [this] { network->compute(); };
  }
};

void bind_and_warm_up(const Entrant& entrant, Network& network, const LatencyOptions& options,
                      Batch batch, Candidate& candidate) {
  for (const int64_t below : runtime::kIntegerRanges) {
    const auto inputs = runtime::random_inputs(
        entrant.model->graph(),
        {.specs = entrant.specs, .batch = batch, .seed = options.seed, .below = below});
    candidate.row.batch = runtime::batch_of(inputs);
    try {
      network.bind(inputs);
      network.compute();
      candidate.network = &network;
      candidate.row.warm_up = 1 + machine::warm_up(candidate.work(), options.rounds);
      return;
    } catch (const std::exception&) {
      if (below == runtime::kIntegerRanges.back()) throw;
    }
  }
}

/// One engine's models with one batch: loaded, then measured interleaved.
std::vector<BenchRow> measure(const std::vector<Entrant>& entrants,
                              const std::vector<std::unique_ptr<Network>>& networks,
                              const std::vector<std::string>& refusals,
                              const LatencyOptions& options, Batch batch) {
  std::vector<Candidate> candidates(entrants.size());
  std::vector<size_t> ready;
  std::vector<machine::Work> works;
  for (size_t m = 0; m < entrants.size(); ++m) {
    Candidate& candidate = candidates[m];
    candidate.row.model = m;
    candidate.row.batch = batch.value_or(1);
    candidate.row.refused = refusals[m];
    if (networks[m] == nullptr) continue;
    try {
      bind_and_warm_up(entrants[m], *networks[m], options, batch, candidate);
      ready.push_back(m);
      works.push_back(candidate.work());
    } catch (const std::exception& error) {
      candidate.row.refused = error.what();
    }
  }
  const auto samples = machine::run_interleaved(works, options.rounds);
  for (size_t i = 0; i < ready.size(); ++i) {
    BenchRow& row = candidates[ready[i]].row;
    row.time = machine::summary_of(samples[i].runs);
    if (i > 0 && ready[0] == 0) {
      row.speedup = machine::compare(samples[0].rounds, samples[i].rounds);
    }
  }
  std::vector<BenchRow> rows;
  for (const Candidate& candidate : candidates) rows.push_back(candidate.row);
  return rows;
}

/// Measures all models and batches on one engine.
std::vector<BenchRow> measure(const std::vector<Entrant>& entrants, Engine& engine,
                              const LatencyOptions& options, const std::vector<Batch>& batches) {
  std::vector<std::unique_ptr<Network>> networks(entrants.size());
  std::vector<std::string> refusals(entrants.size());
  for (size_t m = 0; m < entrants.size(); ++m) {
    try {
      networks[m] = entrants[m].model->open(engine);
    } catch (const std::exception& error) {
      refusals[m] = error.what();
    }
  }
  std::vector<BenchRow> rows;
  for (const Batch batch : batches) {
    for (BenchRow& row : measure(entrants, networks, refusals, options, batch)) {
      Network* network = networks[row.model].get();
      // With several batches it would be the peak of the largest so far.
      const bool counts = row.refused.empty() && batches.size() == 1;
      if (counts) row.peak_bytes = network->peak_bytes();
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

/// Measures with a command, which chooses inputs and batch itself; the runs of the models
/// alternate.
std::vector<BenchRow> measure_by_command(const LatencyOptions& options) {
  constexpr int kRuns = 10;
  const int runs = options.rounds.runs > 0 ? options.rounds.runs : kRuns;
  const int warm_up = std::max(options.rounds.warm_up, 0);
  std::vector<BenchRow> rows(options.models.size());
  std::vector<std::vector<double>> times(rows.size());
  for (int run = -warm_up; run < runs; ++run) {
    for (size_t m = 0; m < rows.size(); ++m) {
      if (!rows[m].refused.empty()) continue;
      try {
        const double seconds = seconds_by(options.command, options.models[m]);
        if (run >= 0) times[m].push_back(seconds);
      } catch (const ModelError& error) {
        rows[m].refused = error.what();
      }
    }
  }
  for (size_t m = 0; m < rows.size(); ++m) {
    rows[m].model = m;
    rows[m].warm_up = warm_up;
    if (!rows[m].refused.empty()) continue;
    rows[m].time = machine::summary_of(times[m]);
    if (m > 0 && rows[0].refused.empty()) rows[m].speedup = machine::compare(times[0], times[m]);
  }
  return rows;
}

std::vector<BenchInput> inputs_of(const Entrant& entrant, Batch batch) {
  std::vector<BenchInput> inputs;
  try {
    for (const TensorBytes& input :
         runtime::random_inputs(entrant.model->graph(), {.specs = entrant.specs, .batch = batch})) {
      inputs.push_back({input.name, input.dtype, input.dims});
    }
  } catch (const UnsupportedError&) {
    // Reported in its row.
  }
  return inputs;
}

bool takes_the_same(const BenchModel& a, const BenchModel& b) {
  const auto same = [](const BenchInput& x, const BenchInput& y) {
    return x.dtype == y.dtype && x.shape == y.shape;
  };
  return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same);
}

std::string text_of(const std::vector<BenchInput>& inputs) {
  std::string text;
  for (const BenchInput& input : inputs) {
    text += (text.empty() ? "" : ", ") + input.name + to_string(input.shape) + " " +
            std::string(name_of(input.dtype));
  }
  return text;
}

void describe_models(const std::vector<Entrant>& entrants, const LatencyOptions& options,
                     Batch batch, BenchReport& report) {
  const auto labels = labels_of(options.models);
  for (size_t m = 0; m < entrants.size(); ++m) {
    const EditableFile& model = *entrants[m].model;
    report.models.push_back({labels[m], model.path(), model.sha256(), size_of_file(model.path()),
                             inputs_of(entrants[m], batch)});
    const BenchModel& first = report.models.front();
    const BenchModel& last = report.models.back();
    if (takes_the_same(first, last) || first.inputs.empty() || last.inputs.empty()) continue;
    report.notes.push_back("the models take different inputs: " + first.label + " " +
                           text_of(first.inputs) + "; " + last.label + " " + text_of(last.inputs));
  }
}

void check_something_ran(const BenchReport& report) {
  std::vector<std::string> reasons;
  for (const BenchRow& row : report.rows) {
    if (row.refused.empty()) return;
    std::string reason = report.models[row.model].label + " on " + report.engines[row.engine].name +
                         ": " + row.refused;
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(std::move(reason));
    }
  }
  throw errors::nothing_runs(reasons);
}

}  // namespace

std::vector<std::optional<int64_t>> parse_batches(const std::string& text) {
  if (text.empty()) return {std::nullopt};
  std::vector<std::optional<int64_t>> batches;
  for (const std::string_view part : split(text, ',')) {
    const auto batch = number_of<int64_t>(part);
    if (batch.value_or(0) < 1) throw bad_batch(text);
    batches.push_back(batch);
  }
  return batches;
}

void add_options(CLI::App& command, LatencyOptions& options) {
  add_option(command, "MODEL", options.models, "",
             "ONNX, TorchScript or .pt2 files; the first is the baseline");
  add_input_option(command, options.specs);
  add_option(
      command, "--batch", options.batches, "N,...",
      "Batch sizes, for files that leave the batch open: 1,64 (default: 1, or as in --input)");
  add_engine_options(command, options.engines, options.threads);
  add_option(command, "--seconds", options.rounds.seconds, "S",
             "Seconds to measure each model on each engine with each batch size (default: 3)")
      ->check(above_zero());
  add_option(command, "--runs", options.rounds.runs, "N",
             "Number of timed runs of each, instead of --seconds")
      ->check(above_zero());
  add_option(command, "--warm-up", options.rounds.warm_up, "N",
             "Number of warm-up runs (default: until times are stable)")
      ->check(not_below_zero());
  for (CLI::Option* option : add_settings(command, latency_command_settings(), options.command)) {
    option->group("Remote device");
    if (option->check_lname("latency-runs")) command.remove_option(option);  // it has --runs
  }
  add_option(command, "--seed", options.seed, "N", "Random seed (default: 1)")
      ->check(not_below_zero());
  add_option(command, "--json", options.json, "FILE", "Write the results as JSON as well");
}

void bench_latency(const LatencyOptions& options, const Session& session) {
  if (options.models.empty()) throw errors::usage("bench", "MODEL is required, or --train NAME");
  std::vector<NamedFile> inputs;
  for (const std::string& model : options.models) inputs.push_back({kModel, model});
  const std::vector<NamedFile> outputs = {{"--json", options.json}};
  check_outputs(outputs, inputs);
  enter_sandbox(session.limits, outputs,
                !options.command.line.empty() || !options.engines.onnxruntime.provider.empty());
  const std::vector<Batch> batches = parse_batches(options.batches);
  EngineOptions expected = options.engines;
  expected.threads = options.threads;
  Progress progress({}, !session.quiet);
  progress.begin("reading");
  const std::vector<Entrant> entrants = read_models(options);
  for (const Entrant& entrant : entrants) check_outputs_beside(outputs, {}, *entrant.model);
  BenchReport report;
  report.command = session.command_line;
  report.seed = options.seed;
  describe_models(entrants, options, batches[0], report);
  Engines engines;
  if (options.command.line.empty()) {
    progress.begin("looking for engines");
    engines = find_engines(expected);
    report.threads = engines.threads;
    report.notes.insert(report.notes.begin(), engines.notes.begin(), engines.notes.end());
  } else {
    progress.begin("measuring with the command");
    report.engines.push_back({"command", "", options.command.line});
    report.rows = measure_by_command(options);
  }
  if (!engines.found.empty()) report.facts = machine::facts_without_torch();
  for (const auto& engine : engines.found) {
    progress.begin("measuring on " + engine->name());
    report.engines.push_back({engine->name(), engine->version(), engine->path()});
    for (BenchRow& row : measure(entrants, *engine, options, batches)) {
      row.engine = report.engines.size() - 1;
      report.rows.push_back(std::move(row));
    }
  }
  progress.finish();
  check_something_ran(report);
  if (!options.json.empty()) write_file(options.json, to_json(report));
  print(to_text(report));
}

}  // namespace parsimony::cli
