#include "parsimony/api/depth.h"
#include "parsimony/api/supplies.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/explain_config.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/network_page.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/progress.h"
#include "parsimony/cli/prune_options.h"
#include "parsimony/report/explain.h"
#include "parsimony/report/speedup.h"

namespace parsimony::cli {
namespace {

struct ExplainOptions {
  std::string model;
  PruneCommandOptions prune;  ///< what the page shows: the config and the options in its place
  ExplainFilter filter;
  std::string dot;
  std::string html;
  std::string granularity;
  std::vector<std::string> inputs;
  bool json = false;
  bool blocks = false;
};

/// What the coupling depends on.
PruneOptions coupling_options(const ExplainOptions& options) {
  PruneOptions result;
  result.interface = options.prune.prune.interface;
  if (!options.granularity.empty()) {
    result.granularity = parse_granularity(options.granularity, "--granularity");
  }
  return result;
}

/// What the configuration asks of every layer.
void print_config(const ExplainOptions& options, const AnalysedModel& model,
                  const ConfigList& config) {
  const ConfigExplanation explanation =
      explain_config(model.graph(), model.analysis, config, coupling_options(options));
  print(options.json ? to_json(explanation) : to_text(explanation));
}

/// What `prune --layers` could remove.
void print_blocks(const ExplainOptions& options, const AnalysedModel& model) {
  const Analysis& analysis = model.analysis;
  DepthReport report;
  report.blocks =
      describe(model.graph(), analysis.sample, residual_blocks(model.graph(), analysis.facts));
  print(options.json ? blocks_json(report) : blocks_text(report));
}

/// The network, and what `prune` would remove if it is said how much.
void write_page(const ExplainOptions& options, const AnalysedModel& model, bool quiet) {
  if (!asks_for_pruning(options.prune)) {
    return write_network_page(options.html, options.model, model.graph(), model.analysis);
  }
  const ConfigList config = config_of(options.prune);
  PruneOptions prune = prune_options_of(options.prune, config);
  Graph& graph = model.model->graph();
  prune.inputs = input_specs(options.inputs, graph);
  Progress progress({}, !quiet);
  prune.progress = [&](std::string_view stage) { progress.begin(std::string(stage)); };
  Supplies supplies(prune, config, graph);
  const Pruning pruning = plan_pruning(graph, config, prune);
  supplies.save();
  progress.finish();
  write_network_page(options.html, options.model, graph, pruning.analysis,
                     decision_of(pruning, asked_text(options.prune), false));
}

void run(ExplainOptions& options, const Session& session) {
  const std::string& config_file = options.prune.config;
  const std::vector<NamedFile> outputs = {{"--dot", options.dot}, {"--html", options.html}};
  check_outputs(outputs, {{kModel, options.model}, {"--config", config_file}});
  enter_sandbox(session.limits, outputs, false);
  const ConfigList config = config_file.empty() ? ConfigList() : read_config(config_file);
  options.prune.granularity = options.granularity;
  const AnalysedModel model =
      read_and_analyse(options.model, options.inputs, coupling_options(options), session.quiet);
  check_outputs_beside(outputs, {}, *model.model);
  if (options.blocks) return print_blocks(options, model);
  const Coupling& coupling = model.analysis.coupling;
  options.filter.all = session.verbosity > 0;
  const Explanation explanation =
      explain(model.graph(), model.analysis.facts, coupling, options.filter);
  if (!options.dot.empty())
    write_file(options.dot, to_dot(model.graph(), model.analysis.facts, coupling));
  if (!options.html.empty()) write_page(options, model, session.quiet);
  if (!config_file.empty()) return print_config(options, model, config);
  print(options.json ? to_json(explanation) : to_text(explanation, options.filter.all));
}

void add_options(CLI::App& command, ExplainOptions& options) {
  add_model_argument(command, options.model);
  CLI::Option* node =
      add_option(command, "--node", options.filter.node, "NAME",
                 "Only what concerns this node: its name, its output or a weight of it");
  add_option(command, "--group", options.filter.group, "ID", "Only this group")->excludes(node);
  add_option(command, "--config", options.prune.config, "CFG.json",
             "Print instead the setting of every layer in this config list, and its entry");
  command.add_flag("--blocks", options.blocks,
                   "Print instead the residual blocks that prune --layers could remove");
  add_option(command, "--dot", options.dot, "F.dot", "Write the network as a picture for Graphviz");
  CLI::Option* html = add_option(
      command, "--html", options.html, "F.html",
      "Write the network as a page to click through; with --config or the options below it also "
      "shows what prune would remove");
  command.add_flag("--json", options.json, "Print one JSON object instead of text");
  add_option(command, "--granularity", options.granularity, "WHAT",
             "What is removed as one: channel, head, head_dim or group");
  add_input_option(command, options.inputs);
  add_interface_options(command, options.prune.prune.interface);
  add_shorthand(command, options.prune, "For --html: what prune would do");
  for (CLI::Option* option : options.prune.shorthand_options) option->needs(html);
  add_calibration_options(command, options.prune.prune.calibration);
  for (const char* name : {"--calibration", "--samples", "--mean", "--std"}) {
    command.get_option(name)->needs(html);
  }
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  add_command<ExplainOptions>(
      app, session, "explain", "Says which channels are coupled and what cannot shrink, and why",
      "parsimony explain resnet.onnx --html resnet.html --ratio 0.5", add_options, run);
}

}  // namespace parsimony::cli
