// The options of `prune`, apart from what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/cli/calibration_order.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/latency_budget.h"
#include "parsimony/cli/recovery_options.h"
#include "parsimony/speedup/proof.h"

namespace parsimony::cli {

struct PruneCommandOptions {
  std::string model;
  std::string output;
  std::string config;
  Shorthand shorthand;
  std::string layers;  ///< residual blocks to remove: "3", "25%", "auto"; empty: none
  std::vector<const CLI::Option*> shorthand_options;  ///< those that a config file replaces
  std::string granularity;                            ///< empty: the config's, or channels
  bool exact_only = false;
  bool rescale = false;
  std::vector<std::string> inputs;
  std::string plan;
  std::string report;
  std::string masks;
  std::string constants = "drop";
  std::string masks_in;  ///< of `speedup`: instead of a config
  bool timings = false;
  bool verify = true;
  std::string threads;  ///< as it was given
  ProofOptions proof;
  CalibrationOrder calibration;
  uint64_t seed = 0;
  LatencyBudgetArguments latency;
  RecoveryOptions recovery;
};

void add_options(CLI::App& command, PruneCommandOptions& options);

/// The options of `speedup`, which takes masks instead of asking for some.
void add_speedup_options(CLI::App& command, PruneCommandOptions& options);

/// Prunes, proves and writes.
void prune(const PruneCommandOptions& options, const Session& session);

/// The config file, or the shorthand; nothing where there are masks. @throws ConfigError if neither
/// says how much, IoError
ConfigList config_of(const PruneCommandOptions& options);

/// @throws ConfigError
PruneOptions prune_options_of(const PruneCommandOptions& options, const Graph& graph);

}  // namespace parsimony::cli
