#include "parsimony/cli/recovery_options.h"

#include "parsimony/cli/errors.h"
#include "parsimony/cli/validators.h"

namespace parsimony::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// For a few epochs on a network that is trained already.
TrainSettings gentle() {
  TrainSettings settings;
  settings.optimizer = OptimizerKind::kSgd;
  settings.lr = 1e-3;
  settings.schedule = RateSchedule::kCosine;
  settings.batch = 128;
  return settings;
}

}  // namespace

void add_recovery_options(CLI::App& command, RecoveryOptions& options) {
  const char* group = "Recovery of what pruning costs";
  command
      .add_option("--recover", options.steps,
                  "One after the other, with calibration data: " + joined(recovery_names()))
      ->type_name("STEP,…")
      ->delimiter(',')
      ->group(group);
  command
      .add_option("--ridge", options.ridge,
                  "What draws least squares towards the weights as they are (0.001)")
      ->type_name("R")
      ->check(not_below_zero())
      ->group(group);
  command.add_option("--rounds", options.rounds, "Rounds of least squares in front of a Relu (3)")
      ->type_name("N")
      ->check(above_zero())
      ->group(group);
  command.add_option("--recover-epochs", options.epochs, "Epochs of finetune (2)")
      ->type_name("N")
      ->check(not_below_zero())
      ->group(group);
  command
      .add_option("--recover-recipe", options.recipe, "How finetune trains: a recipe's \"train\"")
      ->type_name("FILE")
      ->group(group);
}

RecoveryOrder recovery_order(const RecoveryOptions& options, const CalibrationOrder& calibration,
                             const ConfigList& config) {
  RecoveryOrder order;
  for (const std::string& step : options.steps.empty() ? config.recover : options.steps) {
    order.steps.push_back(parse_recovery(step, "--recover"));
  }
  if (order.steps.empty()) return order;
  if (calibration.data.empty()) throw errors::recovery_without_data();
  order.calibration = calibration;
  order.ridge = options.ridge;
  order.rounds = options.rounds;
  order.finetune = options.recipe.empty() ? gentle() : read_recipe(options.recipe).train;
  if (options.recipe.empty()) order.finetune.epochs = options.epochs;
  return order;
}

}  // namespace parsimony::cli
