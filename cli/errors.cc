#include "parsimony/cli/errors.h"

namespace parsimony::cli::errors {
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

}  // namespace parsimony::cli::errors
