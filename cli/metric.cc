#include "parsimony/cli/metric.h"

#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "parsimony/api/errors.h"
#include "parsimony/base/data_uri.h"
#include "parsimony/base/files.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/temporary_folder.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

constexpr std::string_view kModel = "{model}";
constexpr std::string_view kPicture = "{picture}";
constexpr int64_t kMostPicture = 1 << 20;
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

bool is_command(std::string_view metric) { return metric.find(kModel) != std::string::npos; }

void fill_in(std::string& command, std::string_view place, const std::string& path) {
  const std::string word = as_word(path);
  for (size_t at = command.find(place); at != std::string::npos; at = command.find(place, at)) {
    command.replace(at, place.size(), word);
    at += word.size();
  }
}

/// Where a command may write a picture.
class PictureFile {
 public:
  std::string path() const { return (folder_.path() / "picture.png").string(); }
  std::string uri() const {
    if (!std::filesystem::is_regular_file(path()) || size_of_file(path()) > kMostPicture) return "";
    return picture_uri(read_file(path()));
  }

 private:
  TemporaryFolder folder_;
};

/// What a command prints of a model. @throws as Meter::measure
Measured output_of(std::string command, const std::string& model, double minutes) {
  std::optional<PictureFile> picture;
  if (command.find(kPicture) != std::string::npos) {
    fill_in(command, kPicture, picture.emplace().path());
  }
  fill_in(command, kModel, model);
  std::fflush(nullptr);
  const std::string line =
      "exec timeout -k 5 " + std::to_string(60 * minutes) + " sh -c " + as_word(command);
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
  if (picture) result.picture = picture->uri();
  return result;
}

}  // namespace

void add_metric_options(CLI::App& command, MetricOptions& options) {
  std::vector<std::string> names;
  for (const OutputMetric& metric : output_metrics()) names.emplace_back(metric.name);
  add_option(
      command, "--metric", options.commands, "COMMAND",
      "Measures the model before and after: a shell command with {model}, which prints a "
      "number; higher is better, or lower with \":min\" behind it. Or the distance to the dense "
      "network's outputs: " +
          listed(names, names.size()) +
          "; psnr:NAME for the output NAME. May "
          "be given several times")
      ->group("What the network is worth");
  add_metric_minutes(command, options)->group("What the network is worth");
  add_option(
      command, "--metric-runs", options.runs, "N",
      "With --budget metric=-1%, the largest cut that the metric allows: how many are tried (7)")
      ->check(CLI::Range(1, 20))
      ->group("What the network is worth");
}

CLI::Option* add_metric_minutes(CLI::App& command, MetricOptions& options) {
  return add_option(command, "--metric-minutes", options.minutes, "M",
                    "After which such a command is stopped (60)")
      ->check(above_zero());
}

std::optional<BuiltInMetric> parse_built_in(const std::string& text) {
  if (is_command(text)) return {};
  const size_t colon = std::min(text.find(':'), text.size());
  const OutputMetric* found = find_output_metric(std::string_view(text).substr(0, colon));
  if (found == nullptr) throw errors::unknown_metric(text);
  return BuiltInMetric{found, text.substr(std::min(colon + 1, text.size()))};
}

MetricRow parse_metric(const std::string& text) {
  MetricRow row;
  row.command = text;
  if (const auto built_in = parse_built_in(text)) {
    row.lower_is_better = built_in->metric->lower_is_better;
  } else if (text.ends_with(kLower)) {
    row.command.resize(text.size() - kLower.size());
    row.lower_is_better = true;
  }
  return row;
}

double BuiltInMetric::of(const NetworkComparison& networks, const Outputs& found) const {
  if (metric->needs_labels && networks.labels().empty()) {
    throw errors::metric_without_labels(metric->name);
  }
  const Answers answers = answers_of(found, networks.wanted(), output, networks.labels());
  if (!all_finite(answers)) throw parsimony::errors::metric_not_finite(metric->name);
  return metric->value(answers);
}

struct Meter::Comparison {
  Comparison(const std::string& model, const MetricData& data)
      : torch(parse_threads(data.threads)), dense(open_model(model, data.inputs)) {
    CalibrationData job = data.calibration;
    job.inputs = input_specs(data.inputs, dense->graph());
    RandomInputSpec random;
    random.specs = job.inputs;
    networks.emplace(compare_with(dense->graph(), job, random, torch, /*unseen=*/true));
  }

  LazyTorch torch;
  std::unique_ptr<EditableFile> dense;
  std::optional<NetworkComparison> networks;
};

Meter::Meter(const MetricOptions& options, std::string model, MetricData data)
    : options_(options), model_(std::move(model)), data_(std::move(data)) {}
Meter::~Meter() = default;

std::vector<MetricRow> Meter::before() {
  std::vector<MetricRow> rows;
  for (const std::string& text : options_.commands) {
    MetricRow& row = rows.emplace_back(parse_metric(text));
    Measured found = measure(row, model_);
    row.before = found.value;
    row.output_before = std::move(found.output);
  }
  return rows;
}

Measured Meter::measure(const MetricRow& metric, const std::string& model) {
  if (const auto built_in = parse_built_in(metric.command)) {
    return {compare(*built_in, model), {}, {}};
  }
  return output_of(metric.command, model, options_.minutes);
}

double Meter::compare(const BuiltInMetric& metric, const std::string& model) {
  if (comparison_ == nullptr) comparison_ = std::make_unique<Comparison>(model_, data_);
  const NetworkComparison& networks = *comparison_->networks;
  if (model == model_) return metric.of(networks, networks.wanted());
  return metric.of(networks, networks.outputs_of(open_model(model, data_.inputs)->graph()));
}

}  // namespace parsimony::cli
