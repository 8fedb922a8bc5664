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

}  // namespace parsimony::cli
