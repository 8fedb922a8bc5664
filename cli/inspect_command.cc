#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "parsimony/base/errors.h"
#include "parsimony/cli/checkpoint.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/pretrained.h"
#include "parsimony/report/inspect.h"

namespace parsimony::cli {
namespace {

struct InspectOptions {
  std::string model;
  std::vector<std::string> inputs;
  bool json = false;
  bool memory = false;
};

/// Lists the tensors of a directory of transformers in a process of its own, which the sandbox
/// encloses; then Python, in place of this process, lists what may leave.
void inspect_pretrained(const std::string& directory, const Session& session) {
  const pid_t lister = fork();
  if (lister < 0) throw IoError(directory, ": no process can be started to list it");
  if (lister == 0) {
    enter_sandbox(session.limits, {}, false);
    return inspect_checkpoint(folder_of_class(directory), /*as_json=*/false);
  }
  int status = 0;
  waitpid(lister, &status, 0);
  constexpr int kBug = static_cast<int>(Exit::kBug);
  if (status != 0) std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : kBug);
  try {
    hand_over_pretrained("inspect", directory, session);
  } catch (const UnsupportedError& error) {
    print(std::string("note: what may leave is not known: ") + error.what() + "\n");
  }
}

void run_inspect(const InspectOptions& options, const Session& session) {
  const bool is_directory = is_pretrained(options.model);
  if (is_directory && !options.json) return inspect_pretrained(options.model, session);
  enter_sandbox(session.limits, {}, false);
  if (is_directory) return inspect_checkpoint(folder_of_class(options.model), options.json);
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
                              "the contents of a checkpoint; of a directory of transformers also "
                              "what may leave",
                              "parsimony inspect resnet.onnx --input 1x3x224x224", add_options,
                              run_inspect);
}

}  // namespace parsimony::cli
