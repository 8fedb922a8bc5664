// Numbers that say what a model file is worth.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/data_engine.h"
#include "parsimony/api/output_metrics.h"
#include "parsimony/report/prune_report.h"

namespace parsimony::cli {

struct MetricOptions {
  std::vector<std::string> commands;  ///< "COMMAND {model}", also with ":min" behind; "psnr"
  double minutes = 60;                ///< after which a command is stopped
  int runs = 7;                       ///< cuts that a budget tries
};

void add_metric_options(CLI::App& command, MetricOptions& options);
/// --metric-minutes
CLI::Option* add_metric_minutes(CLI::App& command, MetricOptions& options);

/// "psnr" or "psnr:OUTPUT".
struct BuiltInMetric {
  const OutputMetric* metric = nullptr;
  std::string output;  ///< empty: the first

  double of(const NetworkComparison& networks, const Outputs& found) const;
};

/// Empty for a command, with {model} in it. @throws ConfigError for what is neither
std::optional<BuiltInMetric> parse_built_in(const std::string& text);

/// "COMMAND {model}", also with ":min" behind; "psnr".
/// @throws ConfigError for what is neither a command with {model} nor a built-in metric
MetricRow parse_metric(const std::string& text);

struct Measured {
  double value = 0;
  std::string output;   ///< a command's standard output; at most the last 128 kB
  std::string picture;  ///< a PNG or JPEG that it wrote to {picture}, as a data URI; empty: none
};

/// The data and the engine with which the built-in metrics compare models.
struct MetricData {
  CalibrationData calibration;
  std::vector<std::string> inputs;  ///< those of --input
  std::optional<int> threads;
  EngineChoice engine = {};
};

/// Measures models: by a command of the user's, or by a built-in metric that compares their outputs
/// with the dense network's (api/output_metrics.h).
class Meter {
 public:
  /// @param model  the dense network
  Meter(const MetricOptions& options, std::string model, MetricData data);
  ~Meter();

  /// Every metric of the dense network. @throws as parse_metric and measure
  std::vector<MetricRow> before();

  /// A command is run by the shell, with {model} replaced by the path, and {picture} by that of a
  /// file which it may write, of at most 1 MB. The last number in its
  /// standard output is the value; standard error goes through.
  /// @throws ModelError if it fails, takes too long or prints no finite number
  Measured measure(const MetricRow& metric, const std::string& model);

  /// From here on another network may be in the dense network's file.
  void let_replace();

 private:
  struct Comparison;
  void open();
  double compare(const BuiltInMetric& metric, const std::string& model);

  const MetricOptions& options_;
  const std::string model_;
  const MetricData data_;
  std::unique_ptr<Comparison> comparison_;  ///< once a built-in metric is asked for
  bool is_replaced_ = false;
};

}  // namespace parsimony::cli
