// A number that a command of the user's finds out about a model file.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/report/prune_report.h"

namespace parsimony::cli {

struct MetricOptions {
  std::vector<std::string> commands;  ///< "COMMAND {model}", or with ":min" behind
  double minutes = 60;                ///< after which a command is stopped
};

void add_metric_options(CLI::App& command, MetricOptions& options);

/// A command and which way is better.
struct Metric {
  std::string command;
  bool lower_is_better = false;
};

/// @throws ConfigError for one without {model}
Metric parse_metric(const std::string& text);

struct Measured {
  double value = 0;
  std::string output;  ///< its standard output; at most the last 64 kB
};

/// Runs the command by the shell, with {model} replaced by the path. The last number in its
/// standard output is the value; standard error goes through.
/// @throws ModelError if it fails, takes too long or prints no finite number
Measured measure(const Metric& metric, const std::string& model, const MetricOptions& options);

}  // namespace parsimony::cli
