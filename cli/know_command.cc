#include <filesystem>
#include <set>

#include "parsimony/api/known_networks.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/onnx_io/skeleton.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

struct KnowOptions {
  std::string name;
  std::string model;
  std::string output;
  std::vector<std::string> inputs;
  std::vector<std::string> ignored;
};

/// Returns the model as the bytes of an ONNX file.
std::string as_onnx(const KnowOptions& options) {
  if (!is_zip(options.model)) return read_file(options.model);
  const TemporaryFolder folder;
  ExportJob job;
  job.model = options.model;
  job.inputs = options.inputs;
  job.output = folder.path() / "model.onnx";
  job.settings.dynamic_batch = true;
  export_model(job);
  return read_file(job.output);
}

void run_know(const KnowOptions& options, const Session& session) {
  if (options.model.empty()) {
    std::string text;
    for (const std::string& name : known_networks()) text += printable(name) + "\n";
    return print(text);
  }
  std::string path = options.output;
  if (path.empty()) {
    const std::filesystem::path own = known_network_path(options.name);
    std::filesystem::create_directories(own.parent_path());
    path = own;
  }
  check_outputs({{"--output", path}}, {{kModel, options.model}});
  check_ending(path, "onnx");
  const auto model = open_model(options.model, options.inputs);
  check_outputs_beside({{"--output", path}}, {}, *model);
  std::set<std::string, std::less<>> own;
  for (const Weight& weight : model->graph().weights) {
    if (model->owns(weight.name)) own.insert(weight.name);
  }
  const auto is_constant = [&](const std::string& weight) { return !own.contains(weight); };
  const std::string skeleton = onnx_io::skeleton_of(as_onnx(options), is_constant, options.ignored);
  write_file(path, skeleton);
  if (session.quiet) return;
  print(printable(options.model) + " -> " + printable(path) + ", " +
        counted(static_cast<int64_t>(skeleton.size()), "byte") + "\n" +
        "Checkpoints of this network can now be pruned without a model file: parsimony prune "
        "last.ckpt -o small.ckpt\n");
}

void add_options(CLI::App& command, KnowOptions& options) {
  CLI::Option* name = add_option(command, "NAME", options.name, "",
                                 "Name of the network; without it the known networks are listed");
  CLI::Option* model =
      add_option(command, "IN", options.model, "", "Model file of the network, with any weights");
  name->needs(model);
  add_option(
      command, "-o,--output", options.output, "OUT.onnx",
      "Output file for the graph (default: in the user's data folder, where checkpoints find it)");
  add_option(command, "--ignore", options.ignored, "MODULE ...",
             "Modules that are in checkpoints but not in the graph: aux1 aux2");
  add_input_option(command, options.inputs);
}

}  // namespace

void add_know(CLI::App& app, Session& session) {
  add_command<KnowOptions>(
      app, session, "know",
      "Registers a network's graph, so that its checkpoints can be pruned alone",
      "parsimony know mynet net.pt --input 1x3x224x224", add_options, run_know);
}

}  // namespace parsimony::cli
