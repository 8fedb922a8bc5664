#include "parsimony/cli/checkpoint.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/report/inspect.h"

namespace parsimony::cli {
namespace {

struct InspectOptions {
  std::string model;
  std::vector<std::string> inputs;
  bool json = false;
  bool memory = false;
};

void run_inspect(const InspectOptions& options, const Session& session) {
  enter_sandbox(session.limits, {}, false);
  if (is_checkpoint(options.model)) return inspect_checkpoint(options.model, options.json);
  const AnalysedModel model = read_and_analyse(options.model, options.inputs, {}, session.quiet);
  const Analysis& analysis = model.analysis;
  const Inspection inspection =
      inspect(model.graph(), analysis.sample, analysis.coupling, analysis.probe);
  print(options.json     ? to_json(inspection)
        : options.memory ? memory_text(inspection)
                         : to_text(inspection, session.verbosity > 0));
}

void add_options(CLI::App& command, InspectOptions& options) {
  add_model_argument(command, options.model);
  command.add_flag("--json", options.json, "Print one JSON object instead of a table");
  command.add_flag("--memory", options.memory,
                   "Print the memory of the activations while each node runs");
  add_input_option(command, options.inputs);
}

}  // namespace

void add_inspect(CLI::App& app, Session& session) {
  add_command<InspectOptions>(app, session, "inspect",
                              "Lists a model's nodes with shapes, parameters, MACs and groups, or "
                              "the contents of a checkpoint",
                              "parsimony inspect resnet.onnx --input 1x3x224x224", add_options,
                              run_inspect);
}

}  // namespace parsimony::cli
