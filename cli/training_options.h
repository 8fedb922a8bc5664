// The options of `train`, `finetune` and `sweep`: a recipe, and what is said beside it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "parsimony/cli/command.h"
#include "parsimony/cli/training_request.h"

namespace parsimony::cli {

/// What the recipe is to become, until it is read.
struct RecipeOptions {
  std::string config;
  /// What was given beside the recipe, to be written over it.
  std::vector<std::function<void(Recipe&)>> changes;
};

/// All but the model, which `finetune` takes as an argument.
void add_options(CLI::App& command, TrainingRequest& request, RecipeOptions& options);
/// `name` is that of the option, or of the argument.
CLI::Option* add_model_option(CLI::App& command, const std::string& name, RecipeOptions& options);

/// What the recipe says, with the changes. @throws ConfigError, also if model or data are named
/// nowhere; IoError
void complete(TrainingRequest& request, const RecipeOptions& options, const Session& session);

/// The same, with a recipe that is at hand.
void complete(TrainingRequest& request, const RecipeOptions& options, const Session& session,
              Recipe recipe);

}  // namespace parsimony::cli
