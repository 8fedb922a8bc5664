// The options of `prune`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
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
  std::string masks_in;  ///< of `speedup`, in place of a config
  CheckpointOptions checkpoint;
  bool in_place = false;
  bool timings = false;
  // Options that have to be parsed into those of `prune`.
  std::string layers;  ///< residual blocks to remove: "3", "25%", "auto"; empty: none
  std::string granularity;
  std::vector<std::string> inputs;
  std::string sample;
  std::string constants = "drop";
  std::string on_failure = "refuse";
  std::string threads;
  std::vector<std::string> recover;
  std::optional<int> recover_epochs;  ///< of both methods that train
  std::vector<std::string> match;     ///< "NAME" or "NAME=WEIGHT"
  MetricOptions metric;
  RankOptions ranks;
  std::string recipe;  ///< a recipe file, whose `train` configures `finetune`
};

void add_options(CLI::App& command, PruneCommandOptions& options);

/// The options of `speedup`, which takes masks in place of a config.
void add_speedup_options(CLI::App& command, PruneCommandOptions& options);

/// The options that stand for a config file: --ratio, --criterion, …
void add_shorthand(CLI::App& command, PruneCommandOptions& options, const std::string& group);

/// Is there a config file, or one of the options that stand for it?
bool asks_for_pruning(const PruneCommandOptions& options);

/// "--ratio 0.5 --scope global", "--config cfg.json", "--masks m.safetensors": what decides which
/// channels go, as it was typed.
std::string asked_text(const PruneCommandOptions& options);

/// The config file or the shorthand options; empty with masks. @throws ConfigError if neither says
/// how much to prune, IoError
ConfigList config_of(const PruneCommandOptions& options);

/// What its metrics compare networks on.
MetricData metric_data(const PruneCommandOptions& options, CalibrationData calibration);

/// "NAME" or "NAME=WEIGHT".
MatchSettings::Term match_term(const std::string& text);

/// `options.prune` with the configuration, complete except for the inputs, which need the model's
/// graph. @throws ConfigError, IoError
PruneRequest prune_request_of(const PruneCommandOptions& options, ConfigList config);

}  // namespace parsimony::cli
