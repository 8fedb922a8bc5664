// The options of `train`, `finetune` and `sweep`: a recipe, and what is said beside it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/cli/command.h"
#include "parsimony/cli/training_order.h"

namespace parsimony::cli {

struct TrainingOptions {
  std::string config;
  std::string model;
  std::string data;
  std::string device = "auto";
  std::string threads;
  bool deterministic = false;
  bool verify = true;
  std::optional<int64_t> train_samples, test_samples, image_size;
  /// What was given beside the recipe, to be written over it.
  std::vector<std::function<void(Recipe&)>> changes;
};

/// All but the model, which `finetune` takes as an argument.
void add_options(CLI::App& command, TrainingOptions& options);
void add_model_option(CLI::App& command, TrainingOptions& options);

/// Fills what all orders have. @throws ConfigError, also if model or data are named nowhere;
/// IoError
void fill(TrainingOrder& order, const TrainingOptions& options, const Session& session);

/// As `fill`, with a recipe that is at hand.
void fill(TrainingOrder& order, const TrainingOptions& options, const Session& session,
          Recipe recipe);

}  // namespace parsimony::cli
