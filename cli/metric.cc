#include "parsimony/cli/metric.h"

#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>

#include "parsimony/base/parse.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/options.h"

namespace parsimony::cli {
namespace {

constexpr std::string_view kModel = "{model}";
constexpr std::string_view kLower = ":min";
constexpr size_t kMostOutput = 1 << 16;
// What timeout(1) exits with when it had to stop the command.
constexpr int kTimedOut = 124;
constexpr int kKilled = 137;

/// As one word of the shell.
std::string as_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// The last word that is a finite number.
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

}  // namespace

void add_metric_options(CLI::App& command, MetricOptions& options) {
  add_option(
      command, "--metric", options.commands, "COMMAND",
      "Measures the model before and after: a shell command with {model}, which prints a "
      "number; higher is better, or lower with \":min\" behind it. May be given several times")
      ->group("What the network is worth");
  add_option(command, "--metric-minutes", options.minutes, "M",
             "After which such a command is stopped (60)")
      ->check(above_zero())
      ->group("What the network is worth");
}

Metric parse_metric(const std::string& text) {
  Metric metric{text};
  if (metric.command.ends_with(kLower)) {
    metric.command.resize(metric.command.size() - kLower.size());
    metric.lower_is_better = true;
  }
  if (metric.command.find(kModel) == std::string::npos) throw errors::metric_without_model(text);
  return metric;
}

Measured measure(const Metric& metric, const std::string& model, const MetricOptions& options) {
  std::string command = metric.command;
  const std::string path = as_word(model);
  for (size_t at = command.find(kModel); at != std::string::npos; at = command.find(kModel, at)) {
    command.replace(at, kModel.size(), path);
    at += path.size();
  }
  std::fflush(nullptr);
  const std::string line =
      "exec timeout -k 5 " + std::to_string(60 * options.minutes) + " sh -c " + as_word(command);
  std::FILE* const pipe = popen(line.c_str(), "re");
  if (pipe == nullptr) throw errors::metric_failed(command, "it cannot be started", "");
  Measured result;
  std::array<char, 4096> buffer;
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.output.append(buffer.data(), count);
    if (result.output.size() > 2 * kMostOutput) {
      result.output.erase(0, result.output.size() - kMostOutput);
    }
  }
  const int status = pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == kTimedOut || code == kKilled) {
    throw errors::metric_failed(command, "it was stopped after --metric-minutes", result.output);
  }
  if (code != 0) {
    throw errors::metric_failed(command, "exit code " + std::to_string(code), result.output);
  }
  const std::optional<double> number = last_number(result.output);
  if (!number) throw errors::metric_failed(command, "it printed no number", result.output);
  result.value = *number;
  return result;
}

}  // namespace parsimony::cli
