#include "parsimony/cli/metric.h"

#include <algorithm>
#include <filesystem>

#include "parsimony/api/errors.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/shell.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

/// The metric is neither a command with {model} nor built in.
ConfigError unknown_metric(std::string_view found) {
  std::vector<std::string> names;
  for (const OutputMetric& metric : output_metrics()) names.emplace_back(metric.name);
  return ConfigError("--metric ", in_quotes(found),
                     ": expected a command with {model} in place of the model's path, or one of ",
                     listed(names, names.size()), ".", did_you_mean(found, names));
}

constexpr std::string_view kModelPlace = "{model}";
constexpr std::string_view kPicturePlace = "{picture}";
constexpr int64_t kMostPicture = 1 << 20;
constexpr std::string_view kLower = ":min";

bool is_command(std::string_view metric) { return metric.find(kModelPlace) != std::string::npos; }

/// The file to which a command may write a picture.
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

/// Runs a command on a model and parses its output. @throws like Meter::measure
Measured output_of(const std::string& metric, const std::string& model, double minutes) {
  std::optional<PictureFile> picture;
  std::string command = with_path(metric, kModelPlace, model);
  if (command.find(kPicturePlace) != std::string::npos) {
    command = with_path(command, kPicturePlace, picture.emplace().path());
  }
  ShellOutcome ran = run_shell(command, 60 * minutes);
  const auto failed = [&](const std::string& why) {
    return parsimony::errors::command_failed("--metric", command, why, ran.output);
  };
  if (ran.timed_out) throw failed("timed out after --metric-minutes");
  if (!ran.failure.empty()) throw failed(ran.failure);
  const std::optional<double> number = last_number(ran.output);
  if (!number) throw failed("its output contains no number");
  return {*number, std::move(ran.output), picture ? picture->uri() : std::string()};
}

}  // namespace

void add_metric_options(CLI::App& command, MetricOptions& options) {
  std::vector<std::string> names;
  for (const OutputMetric& metric : output_metrics()) names.emplace_back(metric.name);
  add_option(command, "--metric", options.commands, "COMMAND",
             "Metric of the model before and after pruning: a shell command with {model} that "
             "prints a number; higher is better, or lower with the suffix \":min\". Or the "
             "distance to the dense network's outputs: " +
                 listed(names, names.size()) + "; psnr:NAME for the output NAME. May be repeated")
      ->group("Accuracy metric");
  add_metric_minutes(command, options)->group("Accuracy metric");
  add_option(command, "--metric-runs", options.runs, "N",
             "With --budget metric=-1%, the number of cuts to try (default: 7)")
      ->check(within({.lowest = 1, .highest = 20}))
      ->group("Accuracy metric");
}

CLI::Option* add_metric_minutes(CLI::App& command, MetricOptions& options) {
  return add_option(command, "--metric-minutes", options.minutes, "M",
                    "Time limit for such a command, in minutes (default: 60)")
      ->check(above_zero());
}

std::optional<BuiltInMetric> parse_built_in(const std::string& text) {
  if (is_command(text)) return {};
  const size_t colon = std::min(text.find(':'), text.size());
  const OutputMetric* found = find_output_metric(std::string_view(text).substr(0, colon));
  if (found == nullptr) throw unknown_metric(text);
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
    throw ConfigError("--metric ", metric->name, " requires labels, but the data have none");
  }
  const Predictions predictions =
      predictions_of(found, networks.expected(), output, networks.labels());
  if (!all_finite(predictions)) {
    throw ModelError("--metric ", metric->name, ": outputs are NaN or infinite");
  }
  return metric->value(predictions);
}

struct Meter::Comparison {
  Comparison(const std::string& model, const MetricData& data)
      : engine(data.engine, data.threads), dense(open_model(model, data.inputs)) {
    CalibrationData job = data.calibration;
    job.inputs = input_specs(data.inputs, dense->graph());
    RandomInputSpec random;
    random.specs = job.inputs;
    networks.emplace(compare_with(dense->graph(), job, random, engine, /*unseen=*/true));
  }

  DataEngine engine;
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

void Meter::let_replace() {
  const auto compares = [](const std::string& metric) {
    return parse_built_in(metric).has_value();
  };
  if (std::ranges::any_of(options_.commands, compares)) open();
  is_replaced_ = true;
}

void Meter::open() {
  if (comparison_ == nullptr) comparison_ = std::make_unique<Comparison>(model_, data_);
}

double Meter::compare(const BuiltInMetric& metric, const std::string& model) {
  open();
  const NetworkComparison& networks = *comparison_->networks;
  if (model == model_ && !is_replaced_) return metric.of(networks, networks.expected());
  return metric.of(networks, networks.outputs_of(open_model(model, data_.inputs)->graph()));
}

}  // namespace parsimony::cli
