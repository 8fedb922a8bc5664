// The options of `train`, `finetune` and `sweep`: a recipe and its overrides.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "parsimony/cli/command.h"
#include "parsimony/cli/torch_commands.h"

namespace parsimony::cli {

/// Changes of the recipe, applied when it is read.
struct RecipeOptions {
  std::string config;
  /// Command-line overrides of the recipe.
  std::vector<std::function<void(Recipe&)>> changes;
};

/// Adds all options except the model, which `finetune` takes as an argument.
void add_options(CLI::App& command, TrainingRequest& request, RecipeOptions& options);
/// Adds the model; `name` is that of the option or argument.
CLI::Option* add_model_option(CLI::App& command, const std::string& name, RecipeOptions& options);

/// Completes the request with the recipe and its changes. @throws ConfigError, also if model or
/// data are missing; IoError
void complete(TrainingRequest& request, const RecipeOptions& options, const Session& session);

/// Completes the request with a recipe that was read before.
void complete(TrainingRequest& request, const RecipeOptions& options, const Session& session,
              Recipe recipe);

}  // namespace parsimony::cli
