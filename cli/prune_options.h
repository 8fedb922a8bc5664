// The options of `prune`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "parsimony/api/prune_request.h"
#include "parsimony/cli/checkpoint.h"
#include "parsimony/cli/metric.h"
#include "parsimony/cli/processes.h"

namespace parsimony::cli {

struct PruneCommandOptions {
  std::string model;
  std::string output;
  std::string config;
  Shorthand shorthand;
  std::vector<CLI::Option*> shorthand_options;  ///< options that a config file replaces
  std::string preset;                           ///< "quick", "best"; empty: none
  PruneRequest prune;
  std::string plan;
  std::string report;
  std::string html;
  std::string masks;
  std::string scores;    ///< of channels, in place of the criterion's
  std::string masks_in;  ///< for `speedup`, in place of a config
  // Of a directory of transformers, read by the Python package; of a file, the last alone.
  std::vector<std::string> keys;
  std::string experts;
  std::string keep_tokens;
  CheckpointOptions checkpoint;
  bool in_place = false;
  bool timings = false;
  // Options to be parsed into those of `prune`.
  std::vector<std::string> inputs;
  std::string sample;
  std::string recipe;  ///< a recipe file, whose `train` configures `finetune`
  const CLI::Option* recover_epochs = nullptr;  ///< take precedence over `recipe`
  const CLI::Option* layers = nullptr;
  MetricOptions metric;
  RankOptions ranks;
};

void add_options(CLI::App& command, PruneCommandOptions& options);

/// Adds the options of `speedup`, which takes masks in place of a config.
void add_speedup_options(CLI::App& command, PruneCommandOptions& options);

/// Adds the shorthand options that replace a config file: --ratio, --criterion, …
void add_shorthand(CLI::App& command, PruneCommandOptions& options, const std::string& group);

/// Returns whether there is a config file or one of its shorthand options.
bool asks_for_pruning(const PruneCommandOptions& options);

/// Returns the options that determine the removed channels, as typed: "--ratio 0.5 --scope global",
/// "--config cfg.json", "--masks m.safetensors".
std::string asked_text(const PruneCommandOptions& options);

/// Returns the configuration from file or shorthand options; empty with masks. @throws ConfigError
/// if neither specifies an amount, IoError
ConfigList config_of(const PruneCommandOptions& options);

/// Returns the file of --keep-tokens; empty if there is none. @throws UsageError if the option
/// names texts
std::string tokens_file(const PruneCommandOptions& options);

/// Returns the data with which the command's metrics compare networks.
MetricData metric_data(const PruneCommandOptions& options, CalibrationData calibration);

/// Returns `options.prune` with the configuration, complete except for the inputs, which need the
/// model's graph. @throws ConfigError, IoError
PruneRequest prune_request_of(const PruneCommandOptions& options, ConfigList config);

}  // namespace parsimony::cli
