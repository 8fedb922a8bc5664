#include "parsimony/cli/command.h"

#include <cerrno>
#include <cstdio>

#include "parsimony/cli/errors.h"

namespace parsimony::cli {

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& example) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer("Example:\n  " + example);
  command->fallthrough();
  return command;
}

void add_input_option(CLI::App& command, std::vector<std::string>& specs) {
  command
      .add_option("--input", specs,
                  "Size of a graph input that the model leaves open, one per input in order: "
                  "1x3x32x32, 2x8:int64, :int64=16000 (a scalar)")
      ->type_name("SPEC");
}

std::vector<InputSpec> input_specs(const std::vector<std::string>& specs, const Graph& graph) {
  if (specs.size() > graph.inputs.size()) {
    throw errors::too_many_inputs(specs.size(), graph.inputs.size());
  }
  std::vector<InputSpec> result;
  for (const std::string& spec : specs) result.push_back(parse_input_spec(spec));
  return result;
}

void print(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw parsimony::errors::cannot_write("standard output", errno);
  }
}

}  // namespace parsimony::cli
