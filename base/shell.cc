#include "parsimony/base/shell.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "parsimony/base/parse.h"

namespace parsimony {
namespace {

constexpr size_t kMostOutput = 1 << 16;
// What timeout(1) exits with when it had to stop the command.
constexpr int kTimedOut = 124;
constexpr int kKilled = 137;

}  // namespace

ShellOutcome run_shell(const std::string& command, double seconds) {
  std::fflush(nullptr);
  const std::string line =
      "exec timeout -k 5 " + std::to_string(seconds) + " sh -c " + shell_word(command);
  ShellOutcome outcome;
  std::FILE* const pipe = popen(line.c_str(), "re");
  if (pipe == nullptr) {
    outcome.failure = "it cannot be started";
    return outcome;
  }
  std::array<char, 4096> buffer;
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.output.append(buffer.data(), count);
    if (outcome.output.size() > 2 * kMostOutput) {
      outcome.output.erase(0, outcome.output.size() - kMostOutput);
    }
  }
  const int status = pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.timed_out = code == kTimedOut || code == kKilled;
  if (outcome.timed_out) {
    outcome.failure = "it took too long";
  } else if (code != 0) {
    outcome.failure = "exit code " + std::to_string(code);
  }
  return outcome;
}

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string with_path(std::string command, std::string_view name, const std::string& path) {
  const std::string word = shell_word(path);
  for (size_t at = command.find(name); at != std::string::npos; at = command.find(name, at)) {
    command.replace(at, name.size(), word);
    at += word.size();
  }
  return command;
}

std::optional<double> last_number(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,;:=()[]%";
  std::optional<double> found;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const auto number = number_of<double>(text.substr(begin, end - begin));
    if (number && std::isfinite(*number)) found = number;
    begin = end + 1;
  }
  return found;
}

}  // namespace parsimony
