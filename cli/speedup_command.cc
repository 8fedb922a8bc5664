#include <memory>

#include "parsimony/cli/command.h"
#include "parsimony/cli/prune_options.h"

namespace parsimony::cli {

void add_speedup(CLI::App& app, Session& session) {
  auto options = std::make_shared<PruneCommandOptions>();
  CLI::App* command =
      add_command(app, "speedup", "Removes the channels that given masks make zero",
                  "parsimony speedup resnet.onnx --masks m.safetensors -o small.onnx");
  add_speedup_options(*command, *options);
  command->callback(
      [options, &session] { session.run = [options, &session] { prune(*options, session); }; });
}

}  // namespace parsimony::cli
