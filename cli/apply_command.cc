#include <cstdio>

#include "parsimony/api/prune.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/cli/checkpoint.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

struct ApplyOptions {
  std::string model;
  std::string plan;
  std::string output;
  std::vector<std::string> inputs;
  CheckpointOptions checkpoint;
  bool in_place = false;
};

void print_outcome(const ApplyOptions& options, const Plan& plan, const CheckpointJob& checkpoint) {
  print(printable(options.model) + " -> " + printable(options.output) + ", " +
        counted(static_cast<int64_t>(plan.groups.size()), "group") + " pruned\n" +
        checkpoint.summary());
}

/// Replays the plan of a directory, which no network but the names of its tensors is needed for.
/// Returns false for other plans, and if the tensors have not these names.
bool apply_by_name(const ApplyOptions& options, const Plan& plan, const Session& session) {
  if (plan.files.empty() || !options.checkpoint.out.empty()) return false;
  if (!is_checkpoint(options.model) || options.output.ends_with(".onnx")) return false;
  auto checkpoint =
      CheckpointJob::by_name(resolved(options.checkpoint, options.model, options.output), plan);
  if (!checkpoint) return false;
  check_ending(options.output, checkpoint->format());
  checkpoint->write(plan);
  if (!session.quiet) print_outcome(options, plan, *checkpoint);
  return true;
}

void run_apply(const ApplyOptions& options, const Session& session) {
  std::vector<NamedFile> outputs = {{"--output", options.output, kModel}};
  std::vector<NamedFile> files = {{kModel, options.model}, {"--plan", options.plan}};
  add_files(options.checkpoint, outputs, files);
  check_outputs(outputs, files, options.in_place);
  enter_sandbox(session.limits, outputs, false);
  const Plan plan = Plan::load(options.plan);
  if (apply_by_name(options, plan, session)) return;
  Progress progress({"read", "edit", "write"}, !session.quiet);
  progress.begin("read");
  const auto& inputs = options.inputs.empty() ? plan.inputs : options.inputs;
  auto model = open_model(options.model, inputs);
  check_outputs_beside(outputs, files, *model, options.in_place);
  const std::string sha256 = model->sha256();
  const CheckpointOptions asked = resolved(options.checkpoint, options.model, options.output);
  const bool writes_model = asked.out != options.output;
  if (writes_model) check_ending(options.output, model->graph().format);
  CheckpointJob checkpoint(asked, model->graph());
  model = checkpoint.weighted(std::move(model), inputs);
  const Graph& graph = model->graph();
  const Probe probe = choose_probe(graph, input_specs(inputs, graph));
  progress.begin("edit");
  apply_plan(plan, graph, probe, model->editor());
  progress.begin("write");
  checkpoint.write(plan);
  if (writes_model) model->write(options.output);
  progress.finish();
  if (session.quiet) return;
  if (!plan.sha256.empty() && plan.sha256 != sha256) {
    std::fprintf(stderr, "%s%s was made for a different file than %s, but fits it\n",
                 coloured("note: ", Colour::kYellow, Stream::kErr).c_str(),
                 printable(options.plan).c_str(), printable(options.model).c_str());
  }
  print_outcome(options, plan, checkpoint);
}

void add_options(CLI::App& command, ApplyOptions& options) {
  add_model_argument(command, options.model);
  add_option(command, "--plan", options.plan, "P.json", "The plan that `prune --plan` wrote")
      ->required();
  add_option(command, "-o,--output", options.output, "OUT", "Output file for the smaller model")
      ->required();
  add_in_place_option(command, options.in_place);
  add_input_option(command, options.inputs);
  add_checkpoint_options(command, options.checkpoint);
}

}  // namespace

void add_apply(CLI::App& app, Session& session) {
  add_command<ApplyOptions>(
      app, session, "apply", "Replays a plan: writes the same bytes as the run that made it",
      "parsimony apply resnet.onnx --plan p.json -o small.onnx", add_options, run_apply);
}

}  // namespace parsimony::cli
