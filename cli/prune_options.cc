#include "parsimony/cli/prune_options.h"

#include <algorithm>
#include <limits>

#include "parsimony/api/depth.h"
#include "parsimony/api/errors.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/options.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/engines/machine/processor.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/elements/rule.h"
#include "parsimony/report/text.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony::cli {
namespace {

constexpr size_t kAll = std::numeric_limits<size_t>::max();

/// Those with an N:M pattern do. Names that are none are refused later.
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
  add_option(command, "-o,--output", options.output, "OUT", "Where the smaller model goes")
      ->required();
  add_in_place_option(command, options.in_place);
}

void add_constants(CLI::App& command, PruneCommandOptions& options) {
  add_option(command, "--constants", options.constants, "WHAT",
             "What a removed channel leaves behind: nothing (drop), or the constant that zero "
             "weights leave, folded into what remains (exact)")
      ->check(any_of({"drop", "exact"}))
      ->capture_default_str();
}

void add_run(CLI::App& command, PruneCommandOptions& options) {
  add_input_option(command, options.inputs);
  add_sample_option(command, options.sample);
  add_option(command, "--plan", options.plan, "P.json",
             "Write what was removed: for apply and verify");
  add_option(command, "--report", options.report, "R.json",
             "Write costs, groups, notes and times as JSON");
  add_option(
      command, "--html", options.html, "F.html",
      "Write the network as a page to click through: what was removed, and what could not be");
  command.add_flag("!--no-verify", options.prune.verify,
                   "Do not run the masked original and the smaller model to prove the result");
  add_threads_option(command, options.threads);
  command.add_flag("--timings", options.timings, "Print how long each stage took");
}

/// What --preset takes where calibration data are given and no other option says it:
/// docs/results/defaults.md compares the choices.
struct Preset {
  std::string_view name;
  std::string_view criterion;
  std::vector<std::string> recover;
  double minutes;
};

const Preset* preset_of(const PruneCommandOptions& options) {
  static const std::vector<Preset> presets = {
      {"quick", "fisher", {"least-squares"}, 0},
      {"best", "fisher", {"least-squares", "outputs"}, 10},
  };
  if (options.preset.empty()) return nullptr;
  const Preset& found = *std::ranges::find(presets, options.preset, &Preset::name);
  if (!options.prune.calibration.data.empty()) return &found;
  if (found.minutes > 0) {
    throw ConfigError("prune: --preset ", options.preset,
                      " matches the dense network's outputs: it needs --calibration DATA");
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
  const auto add = [&](const char* name, auto& value, const char* type, const std::string& text) {
    return add_option(command, name, value, type, text)->group("Recovery of what pruning costs");
  };
  add("--recover", options.recover, "STEP,…",
      "One after the other, with calibration data: " + listed(recovery_names(), kAll))
      ->delimiter(',');
  add("--ridge", recovery.ridge, "R",
      "What draws least squares towards the weights as they are (by default of 0.0001, 0.001, … 1 "
      "what suits each layer best on held-out samples)")
      ->check(not_below_zero());
  add("--rounds", recovery.rounds, "N", "Rounds of least squares in front of a Relu (3)")
      ->check(above_zero());
  add("--recover-epochs", options.recover_epochs, "N",
      "Epochs of finetune (2; 20 with --loss) and outputs (20)")
      ->check(not_below_zero());
  add("--recover-lr", recovery.outputs.lr, "RATE",
      "Step of outputs, relative to the size of each tensor (0.001)")
      ->check(above_zero());
  add("--recover-minutes", recovery.outputs.minutes, "M", "After which outputs ends at the latest")
      ->check(above_zero());
  add("--match", options.match, "NAME[=WEIGHT],…",
      "With outputs: inner values that are compared too, or weights of the outputs (1)")
      ->delimiter(',');
  add("--recover-recipe", options.recipe, "FILE", "How finetune trains: a recipe's \"train\"");
}

/// In place of the number of --round-to.
constexpr int kAutomatic = std::numeric_limits<int>::min();

Target this_target() {
#if defined(__aarch64__)
  return Target::kArmNeon;
#endif
  const machine::Vectors vectors = vectors_of(machine::this_processor());
  if (vectors == machine::Vectors::kAvx512) return Target::kX86Avx512;
  return vectors == machine::Vectors::kAvx2 ? Target::kX86Avx2 : Target::kGeneric;
}

void add_engine(CLI::App& command, EngineChoice& engine) {
  const char* group = "What runs the network";
  add_option(
      command, "--engine", engine.name, "NAME",
      "For the proof, and for budgets of milliseconds: libtorch, onnxruntime, or auto: for the "
      "proof onnxruntime, and libtorch where that cannot run or finds a difference; for "
      "milliseconds libtorch if it is installed (auto)")
      ->group(group);
  add_onnxruntime_options(command, engine.onnxruntime, group);
}

void add_latency(CLI::App& command, LatencySettings& options) {
  const char* group = "With a budget of milliseconds";
  add_option(command, "--latency-table", options.table, "FILE",
             "Times of layers, read and added to (a file of the cache); those of another machine "
             "are used as they are, or with --latency-command measured by it. With --round-to auto "
             "widths follow their steps")
      ->group(group);
  add_latency_command(command, options.command, group);
  add_option(command, "--batch", options.batch, "N", "Samples per run (1)")
      ->check(above_zero())
      ->group(group);
}

}  // namespace

void add_shorthand(CLI::App& command, PruneCommandOptions& options, const std::string& group) {
  Shorthand& shorthand = options.shorthand;
  const auto listed_in = [&](CLI::Option* option) {
    options.shorthand_options.push_back(option->group(group));
    return option;
  };
  const auto add = [&](const std::string& name, auto& variable, const std::string& text,
                       const char* type) {
    return listed_in(add_option(command, name, variable, type, text));
  };
  listed_in(add_share_option(command, "--ratio", shorthand.ratio, "RATIO",
                             "Share of the budget to remove, 0 <= RATIO < 1: 0.5 or 50%",
                             kBelowOne));
  add("--criterion", shorthand.criterion,
      "What ranks channels or elements: " + listed(criterion_names(), kAll) +
          " (l1); with numbers: 2:4, sparsegpt:2:4, block:4x1",
      "NAME");
  add("--op-types", shorthand.op_types, "Only these: Conv,Gemm or Conv2d,Linear", "TYPE")
      ->delimiter(',');
  add("--exclude", shorthand.exclude,
      "Layers not to prune, by names or patterns ('*.mlp.*'), up to the next option", "NAME");
  add("--scope", shorthand.scope,
      "The ratio holds for each layer (local, the default), for all together (global), for those "
      "in like sub-graphs together (isomorphic), or for all together by what the outputs lose "
      "(outputs)",
      "SCOPE");
  add("--budget", shorthand.budget,
      "What the ratio is a share of: channels (the default), params, macs or weights; or, without "
      "--ratio, what may remain: params=1.5M, macs=2e9, macs=40%, latency_ms=5",
      "WHAT");
  const auto round_to = [](const std::string& text) {
    return text == "auto" ? kAutomatic : number_of<int>(text);
  };
  const auto take = [=, &shorthand](const std::string& text) {
    shorthand.round_to = round_to(text).value();
  };
  const auto check = [=](const std::string& text) {
    return round_to(text) ? "" : "found \"" + text + "\", wanted a whole number or auto";
  };
  listed_in(
      command
          .add_option_function<std::string>("--round-to", take,
                                            "Keep a multiple of K channels; auto: of what the "
                                            "hardware computes well, see --target")
          ->type_name("K")
          ->check(check, ""));
  add("--target", shorthand.target,
      "With --round-to auto, what the network will run on: x86-avx2, x86-avx512, arm-neon, "
      "cuda-tensorcore or generic (this processor)",
      "NAME");
  command.add_flag("--force", shorthand.force,
                   "Also where less than a thousandth of the network may remain");
}

void add_options(CLI::App& command, PruneCommandOptions& options) {
  add_model_files(command, options);
  add_checkpoint_options(command, options.checkpoint);
  add_option(command, "--config", options.config, "CFG.json",
             "Config list: what to prune, and how much");
  add_shorthand(command, options, "Without a config file");
  options.shorthand_options.push_back(
      add_option(command, "--preset", options.preset, "WHAT",
                 "With --calibration, what suits most networks: fisher and least squares (quick), "
                 "and then up to ten minutes of matching the outputs (best); other options go "
                 "before it")
          ->check(any_of({"quick", "best"}))
          ->group("Without a config file"));
  add_option(command, "--granularity", options.granularity, "WHAT",
             "What is removed as one: channel, head, head_dim or group");
  add_interface_options(command, options.prune.interface);
  const auto add_mixing = [&](const char* name, Mixing mixing, const char* meaning) {
    return command.add_flag_callback(
        name, [&options, mixing] { options.prune.mixing = mixing; }, meaning);
  };
  CLI::Option* exact = add_mixing("--exact-only", Mixing::kExact,
                                  "Do not prune groups whose removal changes what remains "
                                  "(LayerNorm, softmax)");
  add_mixing("--allow-mixing", Mixing::kAll,
             "Prune all of these, also outcomes of a softmax that are weighed by position")
      ->excludes(exact);
  command.add_flag("--rescale", options.prune.rescale,
                   "Let numbers such as 1/sqrt(d) follow a size that was cut; by default they keep "
                   "what the network was trained with");
  add_constants(command, options);
  add_option(command, "--on-failure", options.on_failure, "WHAT",
             "Where the proof fails: refuse, or exclude the group at fault and prune the others")
      ->check(any_of({"refuse", "exclude"}))
      ->capture_default_str();
  add_option(command, "--layers", options.layers, "N",
             "Residual blocks to remove, those that change least on --calibration first: 3, 25% "
             "of them, or auto: as many as serve the --budget best");
  add_option(command, "--seed", options.prune.seed, "N", "For criteria that draw at random (0)")
      ->check(not_below_zero());
  add_calibration_options(command, options.prune.calibration);
  add_loss_option(command, options.prune.calibration,
                  "Loss of criteria by gradient and of finetune, where arrays named like outputs "
                  "say what these should be");
  add_option(command, "--masks-out", options.masks, "M.safetensors",
             "Write the masks over the original's weights");
  add_run(command, options);
  add_recovery(command, options);
  add_rank_options(command, options.ranks);
  add_rank_proof_option(command, options.ranks);
  add_metric_options(command, options.metric);
  add_engine(command, options.prune.engine);
  add_latency(command, options.prune.latency);
}

void add_speedup_options(CLI::App& command, PruneCommandOptions& options) {
  options.constants = "exact";
  add_model_files(command, options);
  add_checkpoint_options(command, options.checkpoint);
  add_option(command, "--masks", options.masks_in, "M.safetensors",
             "Which elements of the weights are zero: tensors of the weights' names and "
             "shapes, 0 where an element is removed")
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
  std::string text = options.layers.empty() ? "" : "--layers " + options.layers;
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
                        " is for pruning without a config file; with --config, write it there");
    }
    if (!given && !has_amount && options.config.empty() && options.layers.empty() &&
        option->get_name() == "--ratio" && !says_how_much(options.shorthand.criterion)) {
      throw ConfigError(
          "prune: nothing says how much to remove; give --config CFG.json or --ratio, for example "
          "--ratio 0.5");
    }
  }
  if (!options.config.empty()) {
    ConfigList config = read_config(options.config);
    config.force = config.force || options.shorthand.force;
    return config;
  }
  Shorthand shorthand = options.shorthand;
  const Preset* preset = preset_of(options);
  if (preset != nullptr && !is_given(options, "--criterion"))
    shorthand.criterion = preset->criterion;
  if (shorthand.round_to == kAutomatic) {
    shorthand.round_to = 1;
    if (shorthand.target.empty()) shorthand.target = name_of(this_target());
  } else if (!shorthand.target.empty()) {
    throw errors::usage("prune", "--target says what --round-to auto rounds to");
  }
  return from_shorthand(shorthand);
}

MetricData metric_data(const PruneCommandOptions& options, CalibrationData calibration) {
  calibration.states = options.prune.interface.states;
  return {std::move(calibration), options.inputs, options.threads, options.prune.engine};
}

/// Names may contain "=" themselves.
MatchSettings::Term match_term(const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos) return {.value = text};
  const auto weight = number_of<double>(std::string_view(text).substr(at + 1));
  return weight.value_or(-1) >= 0 ? MatchSettings::Term{text.substr(0, at), *weight}
                                  : MatchSettings::Term{.value = text};
}

PruneRequest prune_request_of(const PruneCommandOptions& options, ConfigList config) {
  PruneRequest result = options.prune;
  result.config = std::move(config);
  if (!options.granularity.empty()) {
    result.granularity = parse_granularity(options.granularity, "--granularity");
  }
  if (options.constants == "exact") result.constants = Constants::kExact;
  if (options.on_failure == "exclude") result.on_failure = OnFailure::kExclude;
  if (!options.masks_in.empty()) result.masks = read_masks(options.masks_in);
  if (!options.layers.empty()) result.depth = parse_depth(options.layers, "--layers");
  result.threads = parse_threads(options.threads);
  result.calibration = resolved(result.calibration, result.config);
  std::vector<std::string> steps =
      options.recover.empty() ? result.config.recover : options.recover;
  if (const Preset* preset = preset_of(options); preset != nullptr && steps.empty()) {
    steps = preset->recover;
    double& minutes = result.recovery.outputs.minutes;
    if (minutes == 0) minutes = preset->minutes;
  }
  for (const std::string& step : steps) {
    result.recovery.steps.push_back(parse_recovery(step, "--recover"));
  }
  if (!options.recipe.empty()) {
    if (!result.calibration.loss.empty()) {
      throw errors::usage("prune",
                          "--recover-recipe is for labels; with --loss give "
                          "--recover-epochs, --recover-lr and --recover-minutes");
    }
    result.recovery.finetune = read_recipe(options.recipe).train;
  }
  if (options.recover_epochs) {
    result.recovery.finetune.epochs = *options.recover_epochs;
    result.recovery.outputs.epochs = *options.recover_epochs;
  }
  for (const std::string& term : options.match) {
    result.recovery.outputs.terms.push_back(match_term(term));
  }
  if (!result.recovery.steps.empty() && result.calibration.data.empty()) {
    throw parsimony::errors::recovery_without_data();
  }
  return result;
}

}  // namespace parsimony::cli
