// The options of `prune`, apart from what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/cli/command.h"

namespace parsimony::cli {

struct PruneCommandOptions {
  std::string model;
  std::string output;
  std::string config;
  Shorthand shorthand;
  std::vector<const CLI::Option*> shorthand_options;  ///< those that a config file replaces
  PruneOptions prune;
  std::string plan;
  std::string report;
  std::string masks;
  std::string masks_in;  ///< of `speedup`: instead of a config
  bool timings = false;
  // What has to be read to become one of `prune`.
  std::string layers;  ///< residual blocks to remove: "3", "25%", "auto"; empty: none
  std::string granularity;
  std::vector<std::string> inputs;
  std::string constants = "drop";
  std::string threads;
  std::vector<std::string> recover;
  std::string recipe;  ///< a file; its `train` is how `finetune` trains
};

void add_options(CLI::App& command, PruneCommandOptions& options);

/// The options of `speedup`, which takes masks instead of asking for some.
void add_speedup_options(CLI::App& command, PruneCommandOptions& options);

/// Prunes, proves and writes.
void prune(const PruneCommandOptions& options, const Session& session);

/// The config file, or the shorthand; nothing where there are masks. @throws ConfigError if neither
/// says how much, IoError
ConfigList config_of(const PruneCommandOptions& options);

/// `options.prune`, complete but for the inputs, which the model's graph must be there for.
/// @throws ConfigError, IoError
PruneOptions prune_options_of(const PruneCommandOptions& options, const ConfigList& config);

}  // namespace parsimony::cli
