// Accuracy metrics of model files.
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
  std::vector<std::string> commands;  ///< "COMMAND {model}", optionally followed by ":min"; "psnr"
  double minutes = 60;                ///< time limit of a command
  int runs = 7;                       ///< networks that a budget tries
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

/// Parses a built-in metric; returns nothing for a command with {model}. @throws ConfigError for
/// anything else
std::optional<BuiltInMetric> parse_built_in(const std::string& text);

/// Parses "COMMAND {model}", optionally followed by ":min", or "psnr". @throws ConfigError for
/// anything else
MetricRow parse_metric(const std::string& text);

struct Measured {
  double value = 0;
  std::string output;   ///< a command's standard output; at most the last 128 kB
  std::string picture;  ///< the PNG or JPEG written to {picture}, as a data URI; empty: none
};

/// The data and the engine with which the built-in metrics compare models.
struct MetricData {
  CalibrationData calibration;
  std::vector<std::string> inputs;  ///< those of --input
  std::optional<int> threads;
  EngineChoice engine = {};
};

/// Measures models with a user's command, or with a built-in metric that compares their outputs
/// with the dense network's (api/output_metrics.h).
class Meter {
 public:
  /// @param model  the dense network
  Meter(const MetricOptions& options, std::string model, MetricData data);
  ~Meter();

  /// Measures all metrics of the dense network. @throws like parse_metric and measure
  std::vector<MetricRow> before();

  /// Measures a model. The shell runs commands with {model} replaced by the path, and {picture} by
  /// the path of a file of at most 1 MB that they may write. The value is the last number in
  /// standard output; standard error is passed through.
  /// @throws ModelError if it fails, takes too long or prints no finite number
  Measured measure(const MetricRow& metric, const std::string& model);

  /// Allows the file of the dense network to be replaced from now on.
  void let_replace();

 private:
  struct Comparison;
  void open();
  double compare(const BuiltInMetric& metric, const std::string& model);

  const MetricOptions& options_;
  const std::string model_;
  const MetricData data_;
  std::unique_ptr<Comparison> comparison_;  ///< set by the first built-in metric
  bool is_replaced_ = false;
};

}  // namespace parsimony::cli
