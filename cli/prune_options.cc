#include "parsimony/cli/prune_options.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "parsimony/api/errors.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/parse.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/options.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/elements/rule.h"
#include "parsimony/pruners/given_scores.h"

namespace parsimony::cli {
namespace {

bool gives(const CLI::Option* option) { return option != nullptr && option->count() > 0; }

/// Returns whether a criterion determines the amount, as N:M patterns do. Unknown names are
/// rejected later.
bool says_how_much(const std::string& criterion) {
  try {
    const auto rule = element_rule(criterion);
    return rule && rule->pattern.exists();
  } catch (const ConfigError&) {
    return false;
  }
}

void add_model_files(CLI::App& command, PruneCommandOptions& options) {
  add_model_argument(command, options.model);
  add_option(command, "-o,--output", options.output, "OUT",
             "Output file for the smaller model; with --plan it may be left out");
  add_in_place_option(command, options.in_place);
}

void add_run(CLI::App& command, PruneCommandOptions& options) {
  add_input_option(command, options.inputs);
  add_sample_option(command, options.sample);
  add_option(command, "--plan", options.plan, "P.json",
             "Write the plan, which apply and verify take");
  add_option(command, "--report", options.report, "R.json",
             "Write costs, groups, notes and times as JSON");
  add_option(command, "--html", options.html, "F.html",
             "Write an HTML page of the network: what was removed, and what could not be removed");
  add_settings(command, run_settings(), options.prune);
  command.add_flag("--timings", options.timings, "Print the time of each stage");
}

/// Values of --preset for options that are not set explicitly; docs/results/defaults.md compares
/// the choices.
struct Preset {
  std::string_view name;
  std::string_view criterion;
  std::string_view scope;
  std::vector<RecoveryMethod> recover;
  double minutes;
};

const Preset* preset_of(const PruneCommandOptions& options) {
  static const std::vector<Preset> presets = {
      {"quick", "obs", "local", {RecoveryMethod::kLeastSquares}, 0},
      {"best",
       "obs,fisher,taylor",
       "local,global",
       {RecoveryMethod::kLeastSquares, RecoveryMethod::kOutputs},
       10},
  };
  if (options.preset.empty()) return nullptr;
  const Preset& found = *std::ranges::find(presets, options.preset, &Preset::name);
  if (!options.prune.calibration.data.empty()) return &found;
  if (found.minutes > 0) {
    throw ConfigError("prune: --preset ", options.preset,
                      " matches the dense network's outputs and requires --calibration DATA");
  }
  return nullptr;  // the options' defaults
}

bool is_given(const PruneCommandOptions& options, std::string_view name) {
  return std::ranges::any_of(options.shorthand_options, [&](const CLI::Option* option) {
    return option->get_name() == name && option->count() > 0;
  });
}

void add_recovery(CLI::App& command, PruneCommandOptions& options) {
  RecoverySettings& recovery = options.prune.recovery;
  const std::string group =
      add_settings(command, recovery_settings(), recovery).front()->get_group();
  options.recover_epochs = command.get_option("--recover-epochs");
  add_settings(command, match_settings(), recovery.outputs);
  add_option(command, "--recover-recipe", options.recipe, "FILE",
             "Recipe whose \"train\" finetune follows")
      ->group(group);
}

void add_engine(CLI::App& command, EngineChoice& engine) {
  const std::string group = add_settings(command, engine_settings(), engine).front()->get_group();
  for (CLI::Option* option : add_settings(command, onnx_runtime_settings(), engine.onnxruntime)) {
    option->group(group);
  }
}

/// Adds the command's options between those of the tables.
void add_latency(CLI::App& command, LatencySettings& latency) {
  add_setting(command, setting(latency_settings(), "latency_table"), latency);
  add_settings(command, latency_command_settings(), latency.command);
  add_settings(command, latency_settings(), latency);
}

}  // namespace

void add_shorthand(CLI::App& command, PruneCommandOptions& options, const std::string& group) {
  for (CLI::Option* option : add_settings(command, shorthand_settings(), options.shorthand)) {
    if (option->get_name() == "--force") continue;  // goes with a config file too
    options.shorthand_options.push_back(option->group(group));
  }
}

void add_options(CLI::App& command, PruneCommandOptions& options) {
  add_model_files(command, options);
  add_checkpoint_options(command, options.checkpoint);
  add_option(command, "--config", options.config, "CFG.json",
             "Config list that says what to prune, and how much");
  add_shorthand(command, options, "Without a config file");
  add_option(command, "--keys", options.keys, "KEY=SHARE",
             "Of a directory of transformers: the sizes of config.json to change, and the share of "
             "each to remove, as intermediate_size=25%")
      ->group("Without a config file");
  add_option(command, "--experts", options.experts, "SHARE",
             "Of a directory of transformers: the share of each layer's experts to remove")
      ->group("Without a config file");
  add_option(
      command, "--keep-tokens", options.keep_tokens, "WHAT",
      "The words that stay: those of numbers (ids:FILE) or, of a directory of transformers, of "
      "texts (text:FILE)")
      ->group("Without a config file");
  options.shorthand_options.push_back(
      add_option(
          command, "--preset", options.preset, "WHAT",
          "Settings that suit most networks, with --calibration: obs and least squares (quick); "
          "the best of obs, fisher and taylor within each layer and across all, least squares and "
          "up to ten minutes of output matching (best); other options take precedence")
          ->check(any_of({"quick", "best"}))
          ->group("Pruning without a config file"));
  add_setting(command, setting(cut_settings(), "granularity"), options.prune);
  add_settings(command, interface_settings(), options.prune.interface);
  add_settings(command, cut_settings(), options.prune);
  options.layers = command.get_option("--layers");
  add_settings(command, calibration_settings(), options.prune.calibration);
  add_settings(command, loss_settings(), options.prune.calibration);
  add_option(command, "--scores", options.scores, "S.safetensors",
             "Scores of channels in place of the criterion's: vectors WEIGHT@AXIS, as fc.weight@1");
  add_option(command, "--masks-out", options.masks, "M.safetensors",
             "Write the masks of the original's weights");
  add_run(command, options);
  add_recovery(command, options);
  add_rank_options(command, options.ranks);
  add_rank_proof_option(command, options.ranks);
  add_metric_options(command, options.metric);
  add_engine(command, options.prune.engine);
  add_latency(command, options.prune.latency);
}

void add_speedup_options(CLI::App& command, PruneCommandOptions& options) {
  options.prune.constants = Constants::kExact;
  add_model_files(command, options);
  add_checkpoint_options(command, options.checkpoint);
  add_option(
      command, "--masks", options.masks_in, "M.safetensors",
      "Masks of the weights: tensors with their names and shapes, 0 where an element is removed")
      ->required();
  add_run(command, options);
}

bool asks_for_pruning(const PruneCommandOptions& options) {
  return !options.config.empty() ||
         std::ranges::any_of(options.shorthand_options,
                             [](const CLI::Option* option) { return option->count() > 0; });
}

std::string asked_text(const PruneCommandOptions& options) {
  if (!options.config.empty()) return "--config " + options.config;
  if (!options.masks_in.empty()) return "--masks " + options.masks_in;
  std::string text = gives(options.layers) ? "--layers " + options.layers->results().front() : "";
  for (const CLI::Option* option : options.shorthand_options) {
    if (option->count() == 0) continue;
    text += (text.empty() ? "" : " ") + option->get_name();
    for (const std::string& word : option->results()) text += " " + word;
  }
  return text;
}

ConfigList config_of(const PruneCommandOptions& options) {
  if (!options.masks_in.empty()) return {};
  const bool has_amount = options.shorthand.budget.find('=') != std::string::npos;
  for (const CLI::Option* option : options.shorthand_options) {
    const bool given = option->count() > 0;
    if (given && !options.config.empty()) {
      throw ConfigError("prune: ", option->get_name(),
                        " cannot be combined with --config; set it in the config file");
    }
    const bool says_what = gives(options.layers) || !options.keep_tokens.empty();
    if (!given && !has_amount && options.config.empty() && !says_what &&
        option->get_name() == "--ratio" && !says_how_much(options.shorthand.criterion)) {
      throw ConfigError(
          "prune: no sparsity given; pass --ratio, --budget or --config, for example --ratio 0.5");
    }
  }
  if (!options.config.empty()) {
    ConfigList config = read_config(options.config);
    config.force = config.force || options.shorthand.force;
    return config;
  }
  Shorthand shorthand = options.shorthand;
  const Preset* preset = preset_of(options);
  if (preset != nullptr && !is_given(options, "--criterion")) {
    shorthand.criterion = preset->criterion;
    if (!is_given(options, "--scope")) shorthand.scope = preset->scope;
  }
  return config_here(std::move(shorthand));
}

MetricData metric_data(const PruneCommandOptions& options, CalibrationData calibration) {
  calibration.states = options.prune.interface.states;
  return {std::move(calibration), options.inputs, options.prune.threads, options.prune.engine};
}

std::string tokens_file(const PruneCommandOptions& options) {
  constexpr std::string_view kIds = "ids:";
  if (options.keep_tokens.empty()) return {};
  if (options.keep_tokens.starts_with(kIds) && options.keep_tokens.size() > kIds.size()) {
    return options.keep_tokens.substr(kIds.size());
  }
  throw errors::usage("prune",
                      "--keep-tokens: expected ids:FILE; texts need the tokenizer of a directory "
                      "of transformers");
}

namespace {

/// Reads numbers between white space, commas and brackets.
std::vector<int64_t> read_token_ids(const std::string& path) {
  std::string text = read_file(path);
  for (char& c : text) {
    if (c == ',' || c == '[' || c == ']') c = ' ';
  }
  std::istringstream words(text);
  std::vector<int64_t> ids;
  for (std::string word; words >> word;) {
    const std::optional<int64_t> id = number_of<int64_t>(word);
    if (!id) throw ConfigError(path, ": expected numbers of words, found ", in_quotes(word));
    ids.push_back(*id);
  }
  if (ids.empty()) throw ConfigError(path, ": has no numbers of words");
  return ids;
}

}  // namespace

PruneRequest prune_request_of(const PruneCommandOptions& options, ConfigList config) {
  PruneRequest result = options.prune;
  result.config = std::move(config);
  if (!options.masks_in.empty()) result.masks = read_masks(options.masks_in);
  if (!options.scores.empty()) result.scores = read_scores(options.scores);
  if (!options.keep_tokens.empty()) result.keep_tokens = read_token_ids(tokens_file(options));
  result.calibration = calibration_of(result);
  result.recovery = recovery_of(result);
  RecoverySettings& recovery = result.recovery;
  if (const Preset* preset = preset_of(options); preset != nullptr && recovery.steps.empty()) {
    recovery.steps = preset->recover;
    if (recovery.outputs.minutes == 0) recovery.outputs.minutes = preset->minutes;
  }
  if (!options.recipe.empty()) {
    if (!result.calibration.loss.empty()) {
      throw errors::usage("prune",
                          "--recover-recipe requires labels; with --loss pass --recover-epochs, "
                          "--recover-lr and --recover-minutes");
    }
    const int epochs = recovery.finetune.epochs;
    recovery.finetune = read_recipe(options.recipe).train;
    if (gives(options.recover_epochs)) recovery.finetune.epochs = epochs;
  }
  if (!recovery.steps.empty() && result.calibration.data.empty()) {
    throw parsimony::errors::recovery_without_data();
  }
  return result;
}

}  // namespace parsimony::cli
