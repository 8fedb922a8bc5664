#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "parsimony/api/data_engine.h"
#include "parsimony/api/importance.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/process_engine.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/metric.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/report/prune_report.h"
#include "parsimony/report/sensitivity.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

struct SensitivityCommandOptions {
  std::string model;
  std::vector<std::string> inputs;
  std::string criterion = "l1";
  MetricOptions metric;  ///< at most one; none: the output error, or the accuracy
  std::vector<double> ratios;
  double ratio = 0;
  CalibrationData calibration;
  uint64_t seed = 1;
  EngineChoice engine;
  std::optional<int> threads;
  std::string json;
  std::string config;
};

void add_rows(const AnalysedModel& model, const std::vector<GroupSensitivity>& curves,
              SensitivityReport& report) {
  const Coupling& coupling = model.analysis.coupling;
  const auto groups = outcomes(model.graph(), coupling, AxisMasks::all_kept(coupling));
  for (const GroupSensitivity& each : curves) {
    const GroupOutcome& group = groups[each.group.index()];
    report.rows.push_back(
        {group.id, group.size, group.layers, each.curve.ratios, each.curve.errors, 0});
  }
}

void propose(const std::vector<GroupSensitivity>& curves, double ratio, SensitivityReport& report) {
  std::vector<SensitivityCurve> all;
  for (const GroupSensitivity& each : curves) all.push_back(each.curve);
  const RatioProposal proposal = propose_ratios(all, ratio);
  report.ratio = ratio;
  report.level = proposal.level;
  report.reached = proposal.reached;
  for (size_t i = 0; i < report.rows.size(); ++i) report.rows[i].proposed = proposal.ratios[i];
}

/// Returns the statistics that the criterion needs, if any.
std::optional<Statistics> statistics_for(const std::string& criterion, const CalibrationData& job,
                                         const AnalysedModel& model, const DataEngine& engine) {
  const std::optional<Measure> measure = find_criterion(criterion).measure;
  if (!measure || job.data.empty()) return {};
  Needs needs;
  needs.channels.insert(*measure);
  return engine.measure(model.graph(), model.analysis.facts, model.analysis.coupling, needs, job);
}

/// The loss by pruning, and the data on which it is measured.
struct LossMeasure {
  NetworkError error_of;
  std::string measure;
  std::string data;
  int64_t samples = 0;
  double accuracy = -1;
};

/// Compares networks in memory with the dense one, by a built-in metric if one is set.
LossMeasure loss_in_memory(const std::optional<BuiltInMetric>& metric, const std::string& name,
                           const std::string& data, const NetworkComparison& comparison) {
  LossMeasure loss;
  loss.measure = metric                      ? name + " lost"
                 : comparison.accuracy() < 0 ? "output error"
                                             : "accuracy lost";
  const bool of_process = ProcessEngine::of_process(data);
  loss.data = data.empty() ? "random inputs" : of_process ? "data of the caller" : data;
  loss.samples = comparison.samples();
  loss.accuracy = comparison.accuracy();
  const double dense = metric ? metric->of(comparison, comparison.expected()) : 0;
  loss.error_of = [=, &comparison](const Trial& small) {
    if (!metric) return comparison(small.graph());
    const double lost = dense - metric->of(comparison, comparison.outputs_of(small.graph()));
    return metric->metric->lower_is_better ? -lost : lost;
  };
  return loss;
}

/// Writes every network to a file for a command.
class CommandLoss {
 public:
  CommandLoss(const MetricOptions& options, const AnalysedModel& model,
              const std::vector<std::string>& inputs)
      : probe_(model.analysis.probe),
        file_(open_model(model.model->path(), inputs)),
        meter_(options, file_->path(), {}),
        dense_(meter_.before().front()) {}

  LossMeasure measure() {
    LossMeasure loss;
    loss.error_of = [this](const Trial& small) { return lost(small); };
    loss.measure = "lost of " + formatted("%g", dense_.before) + ", by " + dense_.command;
    return loss;
  }

 private:
  double lost(const Trial& small) {
    const std::string path = folder_.path() / std::filesystem::path(file_->path()).filename();
    apply_plan(small.plan, file_->graph(), probe_, file_->editor());
    file_->finalize();
    file_->write(path);
    file_->restore();
    const double lost = dense_.before - meter_.measure(dense_, path).value;
    return dense_.lower_is_better ? -lost : lost;
  }

  const Probe& probe_;
  const std::unique_ptr<EditableFile> file_;
  Meter meter_;
  const MetricRow dense_;
  const TemporaryFolder folder_;
};

void run_sensitivity(const SensitivityCommandOptions& options, const Session& session) {
  const std::vector<NamedFile> outputs = {{"--json", options.json},
                                          {"--config-out", options.config}};
  check_outputs(outputs, {{kModel, options.model}});
  if (!options.config.empty() && options.ratio <= 0) {
    throw ConfigError("sensitivity: --config-out requires --ratio, for example --ratio 0.5");
  }
  if (options.metric.commands.size() > 1)
    throw errors::usage("sensitivity", "--metric can be passed only once");
  const std::string metric = options.metric.commands.empty() ? "" : options.metric.commands.front();
  const auto built_in = metric.empty() ? std::nullopt : parse_built_in(metric);
  const bool runs_programs = !metric.empty() && !built_in;
  enter_sandbox(session.limits, outputs,
                runs_programs || !options.engine.onnxruntime.provider.empty() ||
                    options.calibration.uses_device());
  const AnalysedModel model = read_and_analyse(options.model, options.inputs, {}, session.quiet);
  check_outputs_beside(outputs, {}, *model.model);
  const Graph& graph = model.graph();
  DataEngine engine(options.engine, options.threads, options.calibration);
  Progress progress({}, !session.quiet);
  progress.begin("the dense network");
  check_calibration(options.calibration);
  CalibrationData job = options.calibration;
  RandomInputSpec random{input_specs(options.inputs, graph)};
  job.inputs = random.specs;
  if (job.samples) random.samples = *job.samples;
  random.seed = options.seed;
  std::optional<NetworkComparison> comparison;
  std::optional<CommandLoss> by_command;
  if (metric.empty() || built_in) {
    comparison.emplace(compare_with(graph, job, random, engine));
  } else {
    by_command.emplace(options.metric, model, options.inputs);
  }
  const LossMeasure loss =
      by_command ? by_command->measure() : loss_in_memory(built_in, metric, job.data, *comparison);
  SensitivityOptions asked;
  asked.criterion = options.criterion;
  asked.scoring.seed = options.seed;
  const std::optional<Statistics> statistics =
      statistics_for(options.criterion, job, model, engine);
  if (statistics) asked.scoring.statistics = &*statistics;
  if (!options.ratios.empty()) asked.ratios = options.ratios;
  std::sort(asked.ratios.begin(), asked.ratios.end());
  asked.progress = [&](std::string_view group) { progress.begin("group " + std::string(group)); };
  const auto curves = sensitivity(graph, model.analysis, asked, loss.error_of);
  progress.finish();
  SensitivityReport report;
  report.command = session.command_line;
  report.model = options.model;
  report.criterion = options.criterion;
  report.measure = loss.measure;
  report.data = loss.data;
  report.samples = loss.samples;
  report.accuracy = loss.accuracy;
  add_rows(model, curves, report);
  if (options.ratio > 0) propose(curves, options.ratio, report);
  if (!options.json.empty()) write_file(options.json, to_json(report));
  if (!options.config.empty()) write_file(options.config, to_config(report));
  print(to_text(report));
}

void add_options(CLI::App& command, SensitivityCommandOptions& options) {
  add_model_argument(command, options.model);
  add_input_option(command, options.inputs);
  add_option(command, "--criterion", options.criterion, "NAME",
             "Criterion that scores channels (default: l1)");
  add_option(command, "--metric", options.metric.commands, "COMMAND",
             "Metric of a cut, instead of the output error: a shell command with {model}, or a "
             "built-in metric, as in prune");
  add_metric_minutes(command, options.metric);
  add_share_option(command, "--ratios", options.ratios, "R,...",
                   "Fractions of a group to remove (default: 0.1,0.2,…,0.9)",
                   {.lowest = 0.001, .highest = 0.999})
      ->delimiter(',');
  add_share_option(command, "--ratio", options.ratio, "RATIO",
                   "Propose ratios of equal error that remove this fraction of all channels",
                   {.lowest = 0, .highest = 0.999});
  add_option(command, "--config-out", options.config, "CFG.json",
             "Write the proposal for prune --config");
  add_settings(command, calibration_settings(), options.calibration);
  add_loss_option(command, options.calibration,
                  "Loss of gradient criteria, with target arrays named like the outputs");
  add_option(command, "--seed", options.seed, "N", "Random seed (default: 1)")
      ->check(not_below_zero());
  add_option(command, "--engine", options.engine.name, "NAME",
             "Engine: libtorch, onnxruntime or auto (default): libtorch if it is installed");
  add_settings(command, onnx_runtime_settings(), options.engine.onnxruntime);
  add_threads_option(command, options.threads);
  add_option(command, "--json", options.json, "FILE", "Write the curves as JSON as well");
}

}  // namespace

void add_sensitivity(CLI::App& app, Session& session) {
  add_command<SensitivityCommandOptions>(
      app, session, "sensitivity",
      "Measures the network's sensitivity to each group, and proposes ratios",
      "parsimony sensitivity resnet.onnx --ratio 0.5 --config-out cfg.json", add_options,
      run_sensitivity);
}

}  // namespace parsimony::cli
