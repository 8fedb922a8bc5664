#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parsimony/api/engine_services.h"
#include "parsimony/api/metric_budget.h"
#include "parsimony/api/open_model.h"
#include "parsimony/api/prune_file.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/base/files.h"
#include "parsimony/base/words.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/pretrained.h"
#include "parsimony/cli/prune_options.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/data/arrays.h"
#include "parsimony/masks/mask.h"
#include "parsimony/masks/memory.h"
#include "parsimony/report/prune_report.h"
#include "parsimony/report/speedup.h"
#include "parsimony/report/text.h"
#include "parsimony/speedup/constants.h"

namespace parsimony::cli {
namespace {

const std::vector<std::string> kStages = {"read",   "blocks",  "config", "weights",   "infer",
                                          "couple", "measure", "score",  "constants", "plan",
                                          "check",  "recover", "prove",  "edit",      "write"};

/// Returns whether ranking its channels takes noticeable time.
bool is_large(const Graph& graph) {
  constexpr int64_t kLarge = int64_t{1} << 28;  // bytes
  return weight_bytes(graph) >= kLarge;
}

bool any_budget(const ConfigList& config, Budget budget) {
  return std::ranges::any_of(config.entries, [&](const ConfigEntry& entry) {
    const std::vector<Limit>& also = entry.request.also;
    return entry.request.budget == budget ||
           std::ranges::find(also, budget, &Limit::budget) != also.end();
  });
}

/// Returns masks of removed channels and zeroed elements over the original's weights; with exact
/// constants, those of the plan.
std::vector<ElementMask> pruning_masks(const Graph& graph, const Pruning& pruning) {
  if (pruning.plan.constants == Constants::kExact) {
    std::vector<ElementMask> masks;
    for (const PlanMask& mask : pruning.plan.masks) {
      masks.push_back({mask.tensor, mask.dims, mask.keep});
    }
    return masks;
  }
  auto masks = to_element_masks(graph, pruning.analysis.coupling, pruning.allocation.masks);
  merge_masks(masks, pruning.element_masks);
  return masks;
}

/// The file beside the output with the old numbers of the words that stay; empty without such.
std::string id_map_of(const PruneCommandOptions& options) {
  if (options.keep_tokens.empty() || options.output.empty()) return {};
  return options.output + ".kept_token_ids.json";
}

struct Files {
  std::vector<NamedFile> outputs;
  std::vector<NamedFile> inputs;
};

Files files_of(const PruneCommandOptions& options) {
  Files files = {{{"--output", options.output, kModel},
                  {"--plan", options.plan},
                  {"--report", options.report},
                  {"--html", options.html},
                  {"--masks-out", options.masks},
                  {"--keep-tokens", id_map_of(options)}},
                 {{kModel, options.model},
                  {"--config", options.config},
                  {"--masks", options.masks_in},
                  {"--scores", options.scores},
                  {"--keep-tokens", tokens_file(options)}}};
  add_files(options.checkpoint, files.outputs, files.inputs);
  return files;
}

/// Returns whether user commands, other ranks or the driver of a device run.
bool runs_programs(const PruneCommandOptions& options) {
  const auto is_command = [](const std::string& metric) { return !parse_built_in(metric); };
  return wants_ranks(options.ranks) || !options.prune.latency.command.line.empty() ||
         !options.prune.engine.onnxruntime.provider.empty() ||
         options.prune.calibration.uses_device() ||
         std::ranges::any_of(options.metric.commands, is_command);
}

class PruneRun {
 public:
  PruneRun(const PruneCommandOptions& options, const Session& session,
           std::optional<MetricBudget> budget)
      : options_(options),
        session_(session),
        budget_(budget),
        progress_(kStages, !session.quiet && session.verbosity == 0) {}

  void run() {
    const auto [outputs, inputs] = files_of(options_);
    check_outputs(outputs, inputs, options_.in_place);
    check_has_output();
    PruneRequest request = prune_request_of(options_, config_of(options_));
    const ConfigList& config = request.config;
    const std::vector<RecoveryMethod> steps = recovery_of(request).steps;
    // Activations of all samples come and go; training keeps what it has.
    if (!steps.empty() && std::ranges::all_of(steps, is_closed_form)) refuse_large_pages();
    check_something_to_measure(config);
    const RankPlace place = join_ranks(request);
    // First of all, so that a failing command is noticed at once.
    meter_.emplace(options_.metric, options_.model, metric_data(options_, request.calibration));
    if (place.rank == 0) metrics_ = meter_->before();
    if (!budget_) progress_.begin("read");
    std::vector<std::pair<std::string, double>> reading;
    timed(reading, "read", [&] { model_ = open_model(options_.model, options_.inputs); });
    check_outputs_beside(outputs, inputs, *model_, options_.in_place);
    const CheckpointOptions checkpoint =
        resolved(options_.checkpoint, options_.model, options_.output);
    writes_model_ = !options_.output.empty() && checkpoint.out != options_.output;
    if (writes_model_) check_ending(options_.output, model_->graph().format);
    checkpoint_.emplace(checkpoint, model_->graph());
    if (checkpoint.weights_from == "checkpoint") sha256_ = model_->sha256();
    notes_ = model_->notes();
    model_ = checkpoint_->weighted(std::move(model_), options_.inputs);
    request.inputs = input_specs(options_.inputs, model_->graph());
    if (!options_.sample.empty()) {
      request.sample = place_sample(read_arrays(options_.sample), model_->graph());
      request.inputs = with_shapes_of(request.sample, std::move(request.inputs));
    }
    PruneServices shown;
    shown.progress = [this](std::string_view stage) { progress_.begin(stage); };
    if (session_.verbosity > 0 && place.rank == 0) shown.say = log_line;
    EngineServices services(request, model_->graph(), std::move(shown));
    std::jthread libtorch;  // loaded in the background for the proof
    if (request.verify && services.engine->executes_graphs() && is_large(model_->graph())) {
      libtorch = loading_torch_component();
    }
    const PruneResult result = pruned(request, services);
    if (place.rank > 0) return;  // rank 0 has the same
    services.save();
    report_ = report_of(result);
    if (report_.memory) report_.memory->requested = any_budget(config, Budget::kPeakRam);
    report_.timings.insert(report_.timings.begin(), reading.begin(), reading.end());
    complete(result, services);
    write(result, config);
    progress_.finish();
    if (!session_.quiet) print_summary(result.plan);
    if (failed_metric_) throw *failed_metric_;
  }

 private:
  PruneResult pruned(const PruneRequest& request, const PruneServices& services) {
    if (!budget_) return prune_model(*model_, request, services);
    MetricRow& metric = metrics_.front();
    metric.bound = budget_->bound(metric.before, metric.lower_is_better);
    const TemporaryFolder folder;
    const std::string path = folder.path() / std::filesystem::path(options_.output).filename();
    MetricSearch search;
    search.metric = metric.command;
    search.bound = *metric.bound;
    search.lower_is_better = metric.lower_is_better;
    search.runs = options_.metric.runs;
    search.measure = [&](const PruneResult& small) {
      if (writes_model_) {
        model_->write(path);
      } else {
        checkpoint_->write(small.plan, path);
      }
      return meter_->measure(metric, path).value;
    };
    if (!session_.quiet) search.tried = [&](const MetricTrial& trial) { log(trial, search); };
    MetricOutcome outcome = prune_within(*model_, request, services, search);
    metric.trials = std::move(outcome.trials);
    return std::move(outcome.result);
  }

  static void log(const MetricTrial& trial, const MetricSearch& search) {
    log_line(formatted("macs=%.10g%%: ", 100 * trial.macs) +
             (trial.value ? formatted("%.6g", *trial.value) : trial.failure) +
             formatted(", expected %.6g", search.bound));
  }

  /// Returns the rank of this process among those that measure and recover together.
  RankPlace join_ranks(PruneRequest& request) const {
    if (!wants_ranks(options_.ranks)) return {};
    if (any_budget(request.config, Budget::kLatency)) {
      throw errors::usage(
          "prune",
          "--processes cannot be combined with a latency budget: timings differ between processes");
    }
    if (request.calibration.data.empty()) {
      throw errors::usage("prune", "--processes requires --calibration DATA");
    }
    const RankPlace place = ranks_of(options_.ranks, session_);
    if (!place.several()) return place;
    request.calibration.ranks = place;
    request.threads = threads_of(request.threads, place);
    request.verify = request.verify && place.verifies();
    return place;
  }

  void check_has_output() const {
    if (!options_.output.empty()) return;
    const bool needs_files = budget_ || !options_.metric.commands.empty();
    if (!options_.plan.empty() && !needs_files && options_.checkpoint.out.empty()) return;
    throw errors::usage(session_.words.at(1),
                        "--output OUT is required, or --plan alone, without a metric");
  }

  void check_something_to_measure(const ConfigList& config) const {
    const auto rounds = [](const ConfigEntry& entry) { return entry.request.target.has_value(); };
    if (options_.prune.latency.command.line.empty() || any_budget(config, Budget::kLatency) ||
        std::ranges::any_of(config.entries, rounds)) {
      return;
    }
    throw errors::usage("prune",
                        "--latency-command requires --budget latency_ms=… or --round-to auto");
  }

  /// Written files are kept even if this fails.
  void measure_after() {
    report_.metrics = std::move(metrics_);
    for (MetricRow& row : report_.metrics) {
      try {
        Measured found = meter_->measure(row, options_.output);
        row.after = found.value;
        row.output_after = std::move(found.output);
      } catch (const ModelError& error) {
        failed_metric_ = error;
      }
    }
  }

  /// Adds facts that only the command knows.
  void complete(const PruneResult& result, const EngineServices& services) {
    report_.command = session_.command_line;
    report_.source = {options_.model, {}, size_of_file(options_.model)};
    if (model_->path() == options_.model) report_.source.bytes = bytes_with_data(*model_);
    for (const std::string& note : notes_) report_.notes.push_back(note);
    if (!options_.prune.verify && !result.plan.empty()) {
      report_.proof.not_run = "switched off by --no-verify";
    }
    if (!services.without_outputs().empty()) {
      report_.notes.push_back("the importance of widths was taken from the scores: " +
                              services.without_outputs());
    }
    if (result.latency) report_.latency = row_of(*result.latency, *services.profiler());
  }

  /// Writes the model first: files that describe it must not exist without it.
  void write(const PruneResult& result, const ConfigList& config) {
    Plan plan = result.plan;
    plan.sha256 = sha256_.empty() ? model_->sha256() : sha256_;  // which takes a while
    report_.source.sha256 = plan.sha256;
    if (!options_.plan.empty()) static_cast<void>(plan.to_json());  // may throw
    progress_.begin("write");
    if (options_.in_place) meter_->let_replace();
    std::optional<int64_t> bytes;
    timed(report_.timings, "write", [&] {
      checkpoint_->write(plan);
      if (writes_model_) bytes = model_->write(options_.output);
    });
    if (!options_.output.empty()) {
      report_.result = {options_.output, {}, bytes.value_or(size_of_file(options_.output))};
    }
    if (bytes) {
      for (const std::string& note : above_file_budget(config, report_.source.bytes, *bytes)) {
        report_.notes.push_back(note);
      }
    }
    write_id_map(plan);
    if (!options_.plan.empty()) plan.save(options_.plan);
    if (!options_.masks.empty()) write_masks(options_.masks, pruning_masks(result.graph, result));
    measure_after();
    report_.checkpoint = checkpoint_->report();
    if (!options_.report.empty()) write_file(options_.report, to_json(report_));
    if (!options_.html.empty()) {
      write_network_page(options_.html, options_.model, result.graph, result.analysis,
                         decision_of(result, asked_text(options_), true));
    }
  }

  /// Writes the old numbers of words in the order of the new ones.
  void write_id_map(const Plan& plan) {
    const std::string path = id_map_of(options_);
    if (path.empty() || plan.words.empty()) return;
    std::string list;
    for (const int64_t id : plan.words.front().keep) {
      list.append(list.empty() ? "[" : ", ").append(std::to_string(id));
    }
    write_file(path, list + "]\n");
    report_.notes.push_back(std::to_string(plan.words.front().keep.size()) + " of " +
                            counted(plan.words.front().size, "word") +
                            " stay; their old numbers, in the order of the new ones, are in " +
                            path);
  }

  void print_summary(const Plan& plan) const {
    const std::string& written = options_.output.empty() ? options_.plan : options_.output;
    std::string text = coloured(printable(options_.model) + " -> " + printable(written),
                                Colour::kBold, Stream::kOut) +
                       "\n" + to_text(report_, session_.verbosity > 0);
    for (const std::string& note : report_.notes) {
      text += note_mark() + printable(note) + "\n";
    }
    if (!plan.empty() && options_.prune.verify) text += to_text(report_.proof, false, plan);
    if (report_.recovery) text += to_text(*report_.recovery);
    text += checkpoint_->summary();
    if (options_.timings) text += "\n" + timings_text(report_);
    print(text);
  }

  const PruneCommandOptions& options_;
  const Session& session_;
  const std::optional<MetricBudget> budget_;
  Progress progress_;
  std::unique_ptr<EditableFile> model_;
  std::optional<CheckpointJob> checkpoint_;
  std::string sha256_;              ///< of a model's file whose weights were replaced
  std::vector<std::string> notes_;  ///< on it
  bool writes_model_ = true;        ///< false: a checkpoint instead
  std::optional<Meter> meter_;
  std::vector<MetricRow> metrics_;           ///< as far as they are known before the files are
  std::optional<ModelError> failed_metric_;  ///< of the small network
  PruneReport report_;
};

/// Returns the options for a search, without an amount.
PruneCommandOptions searching(PruneCommandOptions options) {
  if (wants_ranks(options.ranks)) {
    throw errors::usage("prune", "--processes cannot be combined with --budget metric");
  }
  if (options.metric.commands.size() != 1) {
    throw ConfigError("--budget metric=…: expected one --metric, found ",
                      options.metric.commands.size());
  }
  if (!options.config.empty() || options.shorthand.ratio != 0) {
    throw ConfigError(
        "--budget metric=… searches for a share of the MACs; it cannot be combined with --ratio or "
        "a --config with amounts; pass --criterion, --scope and other options instead");
  }
  options.shorthand.budget = "macs=100%";
  options.shorthand.force = true;  // the metric says how much
  return options;
}

void prune(const PruneCommandOptions& options, const Session& session) {
  hand_over_pretrained("prune", options.model, session);
  std::vector<NamedFile> written = files_of(options).outputs;
  written.push_back({"--latency-table", options.prune.latency.table});
  std::error_code ignored;                                       // cannot be created in the sandbox
  std::filesystem::create_directories(cache_folder(), ignored);  // for latency tables
  enter_sandbox(session.limits, written, runs_programs(options));
  const std::optional<MetricBudget> budget = parse_metric_budget(options.shorthand.budget);
  if (!options.keys.empty() || !options.experts.empty()) {
    throw errors::usage("prune",
                        "--keys and --experts are for directories of transformers; of a model file "
                        "experts leave by --granularity expert");
  }
  PruneRun(budget ? searching(options) : options, session, budget).run();
}

}  // namespace

void add_prune(CLI::App& app, Session& session) {
  add_command<PruneCommandOptions>(
      app, session, "prune", "Prunes channels of a model",
      "parsimony prune resnet.onnx -o small.onnx --ratio 0.5 --exclude fc --plan p.json",
      add_options, prune);
}

void add_speedup(CLI::App& app, Session& session) {
  add_command<PruneCommandOptions>(
      app, session, "speedup", "Removes the channels that masks make zero",
      "parsimony speedup resnet.onnx --masks m.safetensors -o small.onnx", add_speedup_options,
      prune);
}

}  // namespace parsimony::cli
