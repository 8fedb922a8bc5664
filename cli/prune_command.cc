#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "parsimony/api/apply.h"
#include "parsimony/api/blame.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/calibration.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/comparison.h"
#include "parsimony/cli/depth.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/latency_budget.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/progress.h"
#include "parsimony/cli/prune_options.h"
#include "parsimony/cli/pruning_masks.h"
#include "parsimony/cli/recovery_options.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/cli/threads_option.h"
#include "parsimony/cli/torch_component.h"
#include "parsimony/masks/safetensors.h"
#include "parsimony/report/prune_report.h"
#include "parsimony/report/speedup.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

const std::vector<std::string> kStages = {"read",   "blocks",  "config", "weights",   "infer",
                                          "couple", "measure", "score",  "constants", "plan",
                                          "check",  "prove",   "edit",   "recover",   "write"};

LatencyRow latency_row(const LatencyOutcome& outcome, const LatencyWorkshop& workshop) {
  LatencyRow row;
  row.engine = workshop.engine();
  row.threads = workshop.threads();
  row.wanted = outcome.wanted;
  row.dense = outcome.dense;
  row.tables = outcome.tables;
  row.predicted = outcome.predicted;
  row.measured = outcome.measured;
  row.pieces = outcome.pieces;
  row.fresh = outcome.fresh;
  row.networks = outcome.rounds;
  for (const auto& [key, table] : workshop.tables()) {
    if (row.oldest == 0 || table.measured < row.oldest) row.oldest = table.measured;
  }
  return row;
}

/// Does the configuration have groups ranked by what the outputs lose?
bool asks_for_outputs(const ConfigList& config) {
  return std::any_of(config.entries.begin(), config.entries.end(), [](const ConfigEntry& entry) {
    return !entry.exclude && entry.request.scope == Scope::kOutputs;
  });
}

/// Does it take a while to rank its channels?
bool is_large(const Graph& graph) {
  constexpr int64_t kLarge = int64_t{1} << 28;  // bytes
  int64_t bytes = 0;
  for (const Weight& weight : graph.weights) bytes += weight.count() * size_of(weight.dtype);
  return bytes >= kLarge;
}

/// Why the plan is empty.
std::string reason_for_nothing(const Pruning& pruning) {
  if (pruning.analysis.coupling.groups.empty()) {
    return "no axis of this network can shrink; `parsimony explain` says why";
  }
  for (const auto& keep : pruning.allocation.masks.keep) {
    if (std::find(keep.begin(), keep.end(), 0) != keep.end()) return "the plan is empty";
  }
  if (!pruning.notes.empty()) return "every group stays whole, see the notes";
  return "what was asked for removes no channel";
}

class PruneRun {
 public:
  PruneRun(const PruneCommandOptions& options, const Session& session)
      : options_(options),
        session_(session),
        threads_(parse_threads(options.threads)),
        progress_(kStages, !session.quiet) {}

  void run() {
    const std::vector<NamedFile> outputs = {{"--output", options_.output},
                                            {"--plan", options_.plan},
                                            {"--report", options_.report},
                                            {"--masks-out", options_.masks}};
    check_outputs(outputs, {{"the model", options_.model},
                            {"--config", options_.config},
                            {"--masks", options_.masks_in}});
    const ConfigList config = config_of(options_);
    recovery_ = recovery_order(options_.recovery, resolved(options_.calibration, config), config);
    read();
    check_outputs_beside(outputs, *model_);
    if (options_.verify && is_large(model_->graph())) libtorch_ = loading_torch_component();
    PruneOptions prune_options = prune_options_of(options_, model_->graph());
    prune_options.measure = measurement(resolved(options_.calibration, config), threads_);
    prune_options.progress = [this](std::string_view stage) { progress_.begin(stage); };
    if (asks_for_latency(config)) {
      workshop_.emplace(options_.latency, threads_, prune_options.inputs);
      workshop_->lend(prune_options);
    }
    if (workshop_ || asks_for_outputs(config)) {
      judge_by_outputs(resolved(options_.calibration, config), config, prune_options);
    }
    prune_options.observe = [this](const auto&... what) {
      torch_component().choose_threads(threads_);
      return torch_component().observe(what...);
    };
    plan(config, prune_options);
    if (workshop_) workshop_->save();
    for (const StageTime& time : pruning_.times)
      report_.timings.emplace_back(time.stage, time.seconds);
    if (!recovery_.steps.empty() && pruning_.plan.constants == Constants::kExact) {
      throw errors::recovery_of_exact();
    }
    describe();
    if (options_.verify && !pruning_.plan.empty()) run_original();
    edit();
    if (prover_) prove(config, prune_options);
    recover();
    write();
    progress_.finish();
    if (!session_.quiet) print_summary();
  }

 private:
  void read() {
    progress_.begin("read");
    timed(report_.timings, "read", [&] { model_ = open_model(options_.model, options_.inputs); });
  }

  /// Lends what runs networks and compares their outputs. A budget of milliseconds does without it
  /// where libtorch cannot run the network.
  void judge_by_outputs(const CalibrationOrder& data, const ConfigList& config,
                        PruneOptions& prune_options) {
    try {
      const Graph& original = model_->graph();
      torch_component().choose_threads(threads_);
      comparison_.emplace(compare_with(original, data, {prune_options.inputs}));
      prune_options.fidelity = [this](const Graph& small) { return comparison_->explained(small); };
    } catch (const UnsupportedError& error) {
      if (asks_for_outputs(config)) throw;
      unjudged_ = error.what();
    }
  }

  struct Planned {
    Pruning pruning;
    std::optional<Graph> shallow;  ///< without the blocks that go: the pruning speaks of it
    std::optional<DepthReport> depth;
  };

  Planned planned(Graph& graph, const ConfigList& config, const PruneOptions& options) const {
    if (options_.layers.empty()) return {plan_pruning(graph, config, options), {}, {}};
    DepthOptions depth = depth_options(options_.layers, graph,
                                       resolved(options_.calibration, config), recovery_, threads_);
    depth.progress = options.progress;
    DepthPruning found = plan_depth(graph, config, options, depth);
    return {std::move(found.pruning), std::move(found.graph), std::move(found.report)};
  }

  void plan(const ConfigList& config, const PruneOptions& options) {
    Planned found = planned(model_->graph(), config, options);
    pruning_ = std::move(found.pruning);
    shallow_ = std::move(found.shallow);
    report_.depth = std::move(found.depth);
  }

  /// Fills the report with all that is known before the model is edited: then weights are gone.
  void describe() {
    const Analysis& analysis = pruning_.analysis;
    const Graph& graph = shallow_ ? *shallow_ : model_->graph();
    report_.command = session_.command_line;
    report_.source = {options_.model, {}, size_of_file(options_.model)};
    report_.inputs = input_rows(graph, analysis.sample, analysis.probe);
    report_.uncounted = uncounted(graph, analysis.sample);
    report_.before = pruning_.dense;
    if (!options_.verify) report_.proof.not_run = "switched off by --no-verify";
    if (pruning_.plan.empty()) report_.proof.not_run = "nothing was pruned";
    report_.after = pruning_.small;
    report_.elements = pruning_.elements;
    if (pruning_.plan.constants == Constants::kExact) report_.constants = constants_report();
    report_.groups = outcomes(graph, analysis.coupling, pruning_.allocation.masks);
    for (const CutScale& cut : pruning_.scales) {
      report_.scales.push_back(
          row_of(graph, analysis.coupling, cut, !pruning_.plan.scales.empty()));
    }
    report_.kept_whole = pruning_.plan.kept_whole;
    report_.notes = pruning_.notes;
    if (!unjudged_.empty()) report_.notes.push_back("widths are worth their scores: " + unjudged_);
    if (pruning_.latency) report_.latency = latency_row(*pruning_.latency, *workshop_);
    if (pruning_.plan.empty()) {
      report_.notes.insert(report_.notes.begin(),
                           "nothing was pruned: " + reason_for_nothing(pruning_));
    }
    if (!options_.masks.empty()) masks_ = pruning_masks(graph, pruning_);
  }

  ConstantsReport constants_report() const {
    ConstantsReport report{pruning_.carriers, {}, pruning_.masked};
    for (const PlanFold& fold : pruning_.plan.folds) {
      report.folds.push_back({fold.tensor, fold.reason});
    }
    return report;
  }

  /// The masked original, before its weights are gone.
  void run_original() {
    progress_.begin("prove");
    timed(report_.timings, "prove", [&] {
      try {
        torch_component().choose_threads(threads_);
        prover_ = model_->prover(pruning_.plan, pruning_.analysis.probe, options_.proof);
      } catch (const UnsupportedError& error) {
        report_.proof.not_run = error.what();
      }
    });
  }

  void edit() {
    progress_.begin("edit");
    timed(report_.timings, "edit", [&] {
      apply_plan(pruning_.plan, model_->graph(), pruning_.analysis.probe, *model_->editor());
    });
  }

  void prove(const ConfigList& config, const PruneOptions& options) {
    progress_.begin("prove");
    timed(report_.timings, "prove", [&] { report_.proof = prover_->prove(*model_->runner()); });
    if (report_.proof.holds()) return;
    throw errors::not_proven(to_text(*report_.proof.worst()), blame(config, options));
  }

  /// Values only: how the small model hangs together was proven before.
  void recover() {
    if (recovery_.steps.empty() || pruning_.plan.empty()) return;
    progress_.begin("recover");
    timed(report_.timings, "recover", [&] {
      torch_component().choose_threads(threads_);
      const auto original = open_model(options_.model, options_.inputs);
      Recovered recovered = torch_component().recover(original->graph(), pruning_.plan, recovery_);
      const auto editor = model_->editor();
      for (const PlanFold& fold : recovered.folds) {
        if (!fold.values.empty()) editor->assign(fold.tensor, fold.values);
      }
      pruning_.plan.folds = std::move(recovered.folds);
      report_.recovery = std::move(recovered.report);
    });
  }

  /// The original is edited by now, and is read once more.
  std::string blame(const ConfigList& config, const PruneOptions& options) const {
    if (options.constants == Constants::kExact) return {};  // folds belong to all groups together
    const auto again = open_model(options_.model, options_.inputs);
    const Planned found = planned(again->graph(), config, options);
    const Graph& graph = found.shallow ? *found.shallow : again->graph();
    return group_at_fault(graph, found.pruning, [&](const Plan& plan) {
      return torch_component().differs(graph, plan, found.pruning.analysis.probe, options_.proof);
    });
  }

  /// The model first: what describes it must not appear without it.
  void write() {
    pruning_.plan.sha256 = model_->sha256();
    report_.source.sha256 = pruning_.plan.sha256;
    if (!options_.plan.empty()) static_cast<void>(pruning_.plan.to_json());  // it may refuse
    progress_.begin("write");
    timed(report_.timings, "write", [&] { model_->write(options_.output); });
    report_.result = {options_.output, {}, size_of_file(options_.output)};
    if (!options_.plan.empty()) pruning_.plan.save(options_.plan);
    if (!options_.masks.empty()) write_masks(options_.masks, masks_);
    if (!options_.report.empty()) write_file(options_.report, to_json(report_));
  }

  std::string proof_text() const { return to_text(report_.proof, false, pruning_.plan); }

  static int64_t size_of_file(const std::string& path) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(bytes);
  }

  void print_summary() const {
    std::string text = coloured(printable(options_.model) + " -> " + printable(options_.output),
                                Colour::kBold, Stream::kOut) +
                       "\n" + to_text(report_, session_.verbosity > 0);
    for (const std::string& note : report_.notes) {
      text += coloured("note: ", Colour::kYellow, Stream::kOut) + printable(note) + "\n";
    }
    if (!pruning_.plan.empty() && options_.verify) text += proof_text();
    if (report_.recovery) text += to_text(*report_.recovery);
    if (options_.timings) text += "\n" + timings_text(report_);
    print(text);
  }

  const PruneCommandOptions& options_;
  const Session& session_;
  const std::optional<int> threads_;
  Progress progress_;
  RecoveryOrder recovery_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Prover> prover_;
  std::jthread libtorch_;  ///< loads it for the proof
  std::optional<LatencyWorkshop> workshop_;
  std::optional<NetworkComparison> comparison_;
  std::string unjudged_;  ///< why outputs do not say what widths are worth
  std::optional<Graph> shallow_;
  Pruning pruning_;
  PruneReport report_;
  std::vector<ElementMask> masks_;
};

}  // namespace

void prune(const PruneCommandOptions& options, const Session& session) {
  PruneRun(options, session).run();
}

void add_prune(CLI::App& app, Session& session) {
  auto options = std::make_shared<PruneCommandOptions>();
  CLI::App* command = add_command(
      app, "prune", "Makes a model smaller by removing channels",
      "parsimony prune resnet.onnx -o small.onnx --ratio 0.5 --exclude fc --plan p.json");
  add_options(*command, *options);
  command->callback(
      [options, &session] { session.run = [options, &session] { prune(*options, session); }; });
}

}  // namespace parsimony::cli
