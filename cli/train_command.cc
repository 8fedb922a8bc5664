#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "parsimony/api/torch_component.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/processes.h"
#include "parsimony/cli/prune_options.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/cli/training_options.h"
#include "parsimony/report/ledger.h"
#include "parsimony/report/prune_report.h"
#include "parsimony/report/speedup.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

struct TrainCommandOptions {
  RecipeOptions recipe;
  RankOptions ranks;
  TrainRequest request;
  std::string report;
  // With a --loss other than "labels":
  CalibrationData calibration;
  std::vector<std::string> inputs;
  MatchSettings match;
  bool in_place = false;
};

std::string row(const char* what, const LedgerPoint::Score& score) {
  return score.total == 0
             ? ""
             : std::string(what) + percent(score.correct, score.total) + "  (" +
                   with_thousands(score.correct) + " of " + with_thousands(score.total) + ")\n";
}

std::string summary(const LedgerPoint& point) {
  std::string text;
  if (point.params.before > 0) {
    text += "parameters     " + with_thousands(point.params.before) + " -> " +
            with_thousands(point.params.after) + "\n" + "multiply-adds  " +
            with_thousands(point.macs.before) + " -> " + with_thousands(point.macs.after) + "\n";
  }
  text += row("before         ", point.before) + row("pruned         ", point.pruned) +
          row("after          ", point.after);
  text += "trained        " + formatted("%.1f", point.train.total()) + " s";
  const char* gap = ": ";
  for (const TrainingPhase& phase : phases_in(point.train)) {
    text += std::exchange(gap, ", ") + std::string(phase.name) + " " +
            formatted("%.1f", point.train.*phase.seconds);
  }
  text += "\n";
  if (point.ranks) text += "ranks          " + ranks_text(point) + "\n";
  return text;
}

/// Returns the format of the trained network: that of the file, or of a module.
std::string_view written_as(const std::string& model) {
  if (is_zip(model)) return model.ends_with(".pt2") ? "torch.export" : "torchscript";
  return std::filesystem::exists(model) ? "onnx" : "torchscript";
}

void run_train(TrainCommandOptions& options, const Session& session) {
  TrainRequest& request = options.request;
  request.ranks = ranks_of(options.ranks, session);
  request.threads = threads_of(request.threads, request.ranks);
  complete(request, options.recipe, session);
  if (request.recipe.sweep)
    request.recipe.sweep.reset();  // train a single point with the entries' settings
  if (request.recipe.train.distill > 0 && request.teacher.empty() && !request.recipe.prune) {
    throw errors::usage("train", "--distill requires a --teacher, or a recipe that prunes");
  }
  if (!request.plan.empty() && !request.recipe.prune) {
    throw errors::usage("train", "--plan: the recipe has no \"prune\"");
  }
  check_outputs({{"-o", request.out, "--model"},
                 {"--plan", request.plan},
                 {"--report", options.report},
                 {"--checkpoint", request.checkpoint},
                 {"--profile", request.profile}},
                {{"--model", request.recipe.model},
                 {"--config", options.recipe.config},
                 {"--teacher", request.teacher}},
                options.in_place);
  check_ending(request.out, written_as(request.recipe.model));
  const LedgerPoint point = torch_commands().train(request);
  if (request.ranks.rank > 0) return;
  if (!options.report.empty()) write_file(options.report, to_json_line(point) + "\n");
  if (!session.quiet) print(summary(point));
}

constexpr const char* kLabelsOfData = "labels";
constexpr const char* kTeachersOutputs = "outputs";

void check_on_arrays(const TrainCommandOptions& options, const Recipe& recipe, bool by_teacher) {
  const TrainRequest& request = options.request;
  const std::string loss = "--loss " + options.calibration.loss;
  if (!recipe.data.empty() || !request.checkpoint.empty() || !request.profile.empty() ||
      !request.tensorboard.empty()) {
    throw errors::usage(
        "finetune",
        loss + " cannot be combined with --data, --checkpoint, --profile and --tensorboard");
  }
  const RankSettings& ranks = options.ranks.settings;
  if (ranks.local_norms || ranks.half_gradients || ranks.all_verify) {
    throw errors::usage(
        "finetune",
        loss + " cannot be combined with --local-batch-norm, --half-gradients and --verify all");
  }
  if (options.calibration.data.empty()) {
    throw errors::usage("finetune", loss + " requires --calibration DATA");
  }
  if (request.teacher.empty() && by_teacher) {
    throw errors::usage("finetune", loss + " requires --teacher MODEL");
  }
  if (!by_teacher && !(request.teacher.empty() && options.match.terms.empty())) {
    throw errors::usage("finetune", "--teacher and --match require --loss outputs");
  }
}

/// Trains to match the teacher's outputs, without labels, or arrays of the data.
void run_on_arrays(TrainCommandOptions& options, const Session& session) {
  Recipe recipe = options.recipe.config.empty() ? Recipe() : read_recipe(options.recipe.config);
  for (const auto& change : options.recipe.changes) change(recipe);
  check_settings(recipe.train, "command line");
  const TrainRequest& request = options.request;
  const bool by_teacher = options.calibration.loss == kTeachersOutputs;
  check_on_arrays(options, recipe, by_teacher);
  const std::string& teacher = by_teacher ? request.teacher : recipe.model;
  const std::vector<NamedFile> outputs = {{"-o", request.out, kModel},
                                          {"--report", options.report}};
  const std::vector<NamedFile> inputs = {
      {kModel, recipe.model}, {"--config", options.recipe.config}, {"--teacher", request.teacher}};
  check_outputs(outputs, inputs, options.in_place);
  const std::unique_ptr<EditableFile> dense = open_model(teacher, options.inputs);
  const std::unique_ptr<EditableFile> small = open_model(recipe.model, options.inputs);
  check_outputs_beside(outputs, inputs, *small, options.in_place);
  check_ending(request.out, small->graph().format);
  CalibrationData data = options.calibration;
  data.mean = recipe.train.mean;
  data.deviation = recipe.train.deviation;
  data.device = request.device;
  check_calibration(data);
  data.inputs = input_specs(options.inputs, dense->graph());
  RecoverySettings settings;
  settings.steps = {by_teacher ? RecoveryMethod::kOutputs : RecoveryMethod::kFinetune};
  if (by_teacher) data.loss.clear();
  settings.outputs = options.match;
  settings.outputs.epochs = recipe.train.epochs;
  settings.outputs.lr = recipe.train.lr;
  const RankPlace place = ranks_of(options.ranks, session);
  if (place.several()) data.ranks = place;
  const Say say = !session.quiet && place.rank == 0 ? Say(log_line) : Say();
  const LazyTorch torch(threads_of(request.threads, place));
  const Recovered result =
      torch.loaded().recover_pruned(dense->graph(), small->graph(), settings, data, say);
  if (place.rank > 0) return;  // rank 0 has the same
  for (const TensorUpdate& update : result.updates) {
    small->editor().assign(update.tensor, update.values);
  }
  small->finalize();
  small->write(request.out);
  if (!options.report.empty()) write_file(options.report, to_json(result.report));
  if (!session.quiet) print(to_text(result.report));
}

/// Runs finetune: with --data the loss uses labels, with --calibration arrays.
void run_finetune(TrainCommandOptions& options, const Session& session) {
  CalibrationData& calibration = options.calibration;
  if (calibration.loss == kLabelsOfData) calibration.loss.clear();
  if (calibration.loss.empty() && !calibration.data.empty() && !options.recipe.config.empty()) {
    calibration.loss = read_recipe(options.recipe.config).train.loss;
  }
  const bool on_arrays = calibration.loss == kTeachersOutputs || !calibration.data.empty();
  if (!calibration.loss.empty() && on_arrays) return run_on_arrays(options, session);
  if (!calibration.loss.empty()) {
    options.recipe.changes.push_back(
        [loss = calibration.loss](Recipe& recipe) { recipe.train.loss = loss; });
  }
  const bool given = !calibration.data.empty() || !calibration.states.empty() ||
                     !calibration.image.empty() || !options.inputs.empty() ||
                     !options.match.terms.empty() || options.match.minutes > 0;
  if (given) {
    throw errors::usage("finetune",
                        "--calibration, --image, --states, --input, --match and --minutes require "
                        "--loss outputs or a loss of arrays");
  }
  run_train(options, session);
}

void add_files(CLI::App& command, TrainCommandOptions& options) {
  TrainRequest& request = options.request;
  add_option(command, "--report", options.report, "FILE", "Write the result as JSON");
  add_option(command, "--checkpoint", request.checkpoint, "FILE",
             "Write the state after every epoch, and resume from it if it exists");
  add_option(command, "--profile", request.profile, "FILE", "Write a trace for chrome://tracing");
  add_option(command, "--tensorboard", request.tensorboard, "DIR",
             "Folder for TensorBoard event files with losses, scores and sizes");
  add_option(command, "--teacher", request.teacher, "MODEL", "Model to distil from, see --distill");
}

void add_train_options(CLI::App& command, TrainCommandOptions& options) {
  TrainRequest& request = options.request;
  add_model_option(command, "--model", options.recipe)->type_name("NAME");
  add_option(command, "-o,--output", request.out, "OUT", "The trained network");
  add_in_place_option(command, options.in_place);
  add_option(command, "--plan", request.plan, "FILE", "Write the plan of the last cut");
  add_options(command, request, options.recipe);
  add_rank_training_options(command, options.ranks);
  add_files(command, options);
}

void add_finetune_options(CLI::App& command, TrainCommandOptions& options) {
  add_model_option(command, "model", options.recipe)->required()->type_name("IN");
  add_option(command, "-o,--output", options.request.out, "OUT", "The trained model")->required();
  add_in_place_option(command, options.in_place);
  add_loss_option(
      command, options.calibration,
      "Training targets: the labels of the data (labels, the default), the outputs of the teacher "
      "(outputs), or arrays of --calibration that are named like the outputs",
      {kLabelsOfData, kTeachersOutputs});
  add_options(command, options.request, options.recipe);
  add_rank_training_options(command, options.ranks);
  add_files(command, options);
  add_setting(command, setting(match_settings(), "match"), options.match)
      ->description("With --loss outputs: inner values to match as well, or weights of the outputs")
      ->group("Options");
  add_option(command, "--minutes", options.match.minutes, "M",
             "With --calibration: time limit, in minutes")
      ->check(above_zero());
  add_option(command, "--states", options.calibration.states, "STATES",
             "With --calibration: outputs that are fed back as inputs, auto or OUT=IN,…")
      ->delimiter(',');
  add_input_option(command, options.inputs);
  add_settings(command, calibration_settings(), options.calibration);
}

}  // namespace

void add_train(CLI::App& app, Session& session) {
  add_command<TrainCommandOptions>(
      app, session, "train",
      "Trains a network, and prunes it during training if the recipe says so",
      "parsimony train --model cnn --data shapes --epochs 3 -o cnn.pt", add_train_options,
      run_train);
}

void add_finetune(CLI::App& app, Session& session) {
  add_command<TrainCommandOptions>(
      app, session, "finetune", "Fine-tunes an ONNX or TorchScript model",
      "parsimony finetune small.onnx -o tuned.onnx --data cifar10:DIR --epochs 3",
      add_finetune_options, run_finetune);
}

}  // namespace parsimony::cli
