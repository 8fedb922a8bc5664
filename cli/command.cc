#include "parsimony/cli/command.h"

#include <cerrno>
#include <cstdio>

#include "parsimony/base/errors.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

void print(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw parsimony::errors::cannot_write("standard output", errno);
  }
}

void log_line(const std::string& line) { std::fprintf(stderr, "%s\n", printable(line).c_str()); }

namespace errors {
namespace {

std::string help_hint(std::string_view command) {
  const std::string name = command.empty() ? std::string() : " " + std::string(command);
  return "See `parsimony" + name + " --help`.";
}

}  // namespace

ConfigError usage(std::string_view command, std::string_view message) {
  std::string text(message);
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  return ConfigError(text + ". " + help_hint(command));
}

ConfigError unknown_command(std::string_view name, std::span<const std::string> known) {
  return ConfigError("unknown command ", in_quotes(name), ".", did_you_mean(name, known), " ",
                     help_hint({}));
}

ConfigError unexpected(std::string_view command, std::string_view argument,
                       std::span<const std::string> known) {
  return ConfigError(argument.starts_with('-') ? "unknown option " : "unexpected argument ",
                     in_quotes(argument), ".", did_you_mean(argument, known), " ",
                     help_hint(command));
}

UnsupportedError nothing_runs(std::span<const std::string> reasons) {
  std::string text = "bench: no engine runs any of the models";
  for (const std::string& reason : reasons) text += "\n  " + reason;
  return UnsupportedError(text);
}

}  // namespace errors

}  // namespace parsimony::cli
