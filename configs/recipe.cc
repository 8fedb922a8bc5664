#include "parsimony/configs/recipe.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/parse.h"
#include "parsimony/configs/fields.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {
namespace {

TrainSettings read_train(const JsonReader& object) {
  TrainSettings train;
  object.only(keys_of(train_fields()));
  read_fields(object, train_fields(), train);
  check_settings(train, object.place());
  return train;
}

/// Keys of one schedule say nothing to another.
void check_schedule(const JsonReader& object, const PruneSettings& prune) {
  const auto needs = [&](std::string_view key, const std::string& schedules) {
    object.fail('"' + std::string(key) + "\" needs \"schedule\": " + schedules);
  };
  if (!has_steps(prune.schedule) && prune.steps > 1) {
    needs("steps", "\"linear\", \"agp\" or \"lottery\"");
  }
  if (prune.schedule != PruningSchedule::kLottery && object.has("rewind_epoch")) {
    needs("rewind_epoch", "\"lottery\"");
  }
  if (prune.rewind_epoch > prune.warmup_epochs) {
    object.fail("\"rewind_epoch\" is above \"warmup_epochs\"");
  }
  const bool annealing = prune.schedule == PruningSchedule::kAnnealing;
  for (const std::string_view key : {"search_steps", "search_samples"}) {
    if (!annealing && object.has(key)) needs(key, "\"annealing\"");
  }
  for (const ConfigEntry& entry : prune.config.entries) {
    if (!annealing || entry.request.budget == Budget::kChannels) continue;
    object.fail("\"annealing\" moves channels between layers: its budget is \"channels\"");
  }
}

PruneSettings read_prune(const JsonReader& object) {
  PruneSettings prune;
  std::vector<std::string> own = keys_of(prune_fields());
  own.emplace_back("penalty");
  object.only(keys::joined(own, keys::of_file()));
  read_fields(object, prune_fields(), prune);
  if (const auto penalty = object.find("penalty")) {
    penalty->only(keys_of(penalty_fields()));
    read_fields(*penalty, penalty_fields(), prune.penalty);
  }
  // The rest is a configuration as `prune --config` reads it.
  own.emplace_back("$schema");
  prune.text =
      object.json(JsonOrder::kSorted, std::vector<std::string_view>(own.begin(), own.end()));
  prune.config = config_of(object, true);
  for (const ConfigEntry& entry : prune.config.entries) {
    if (!entry.request.has_choice()) continue;
    throw ConfigError(entry.source.place,
                      ": a recipe trains with one criterion and scope; \"sweep\" with each of "
                      "several criteria");
  }
  check_schedule(object, prune);
  return prune;
}

SweepSettings read_sweep(const JsonReader& object) {
  SweepSettings sweep;
  object.only({"criterion", "seed", "sparsity"});
  const auto each = [&](std::string_view key, const auto& read) {
    const auto list = object.find(key);
    if (!list) return;
    const JsonReader::Items values = list->list();
    if (list->size() == 0) list->fail("the list is empty");
    for (const JsonReader value : values) read(value);
  };
  each("sparsity",
       [&](const JsonReader& value) { sweep.sparsity.push_back(value.number(kBelowOne)); });
  each("criterion", [&](const JsonReader& value) {
    sweep.criterion.push_back(parse_criterion(value.text(), value.place()));
    if (find_criterion(sweep.criterion.back()).score == nullptr) {
      value.fail('"' + sweep.criterion.back() +
                 "\" zeroes single elements, and training would fill them again");
    }
  });
  each("seed", [&](const JsonReader& value) {
    sweep.seed.push_back(static_cast<uint64_t>(value.small(0)));
  });
  if (sweep.sparsity.empty()) object.fail("no \"sparsity\"");
  return sweep;
}

}  // namespace

void check_settings(const TrainSettings& train, std::string_view place) {
  if (train.early_stop > 0 && train.evaluate_every != 1) {
    throw ConfigError(place, ": \"early_stop\" needs \"evaluate_every\": 1");
  }
  if (!train.loss.empty()) parse_losses(train.loss);
  if (train.mean.size() != train.deviation.size()) {
    throw ConfigError(place, ": \"mean\" has ", train.mean.size(), " numbers and \"std\" ",
                      train.deviation.size());
  }
  if (train.normalise && !train.mean.empty()) {
    throw ConfigError(place, ": \"normalise\" measures what \"mean\" and \"std\" say");
  }
}

bool has_steps(PruningSchedule schedule) {
  return schedule == PruningSchedule::kLinear || schedule == PruningSchedule::kAgp ||
         schedule == PruningSchedule::kLottery;
}

Recipe parse_recipe(std::string_view json, std::string_view file_name) {
  const JsonDocument document(json, file_name);
  const JsonReader root = document.root();
  root.only({"$schema", "data", "model", "prune", "sweep", "train"});
  Recipe recipe;
  if (const auto model = root.find("model")) recipe.model = model->text();
  if (const auto data = root.find("data")) recipe.data = data->text();
  if (const auto train = root.find("train")) recipe.train = read_train(*train);
  if (const auto prune = root.find("prune")) recipe.prune = read_prune(*prune);
  if (const auto sweep = root.find("sweep")) recipe.sweep = read_sweep(*sweep);
  if (recipe.sweep && !recipe.prune) root.fail("\"sweep\" without \"prune\"");
  return recipe;
}

Recipe read_recipe(const std::string& path) { return parse_recipe(read_file(path), path); }

std::string settings_json(const Recipe& recipe) {
  std::string json = "{\"train\":{" + json_members(train_fields(), recipe.train) + '}';
  if (recipe.prune) {
    const JsonDocument config(recipe.prune->text, "the configuration");
    std::string text = config.root().json();
    text.back() = config.root().size() > 0 ? ',' : ' ';
    if (text.back() == ' ') text.pop_back();
    json += ",\"prune\":" + text + json_members(prune_fields(), *recipe.prune) + ",\"penalty\":{" +
            json_members(penalty_fields(), recipe.prune->penalty) + "}}";
  }
  return json + '}';
}

ScheduleSetting read_schedule(const JsonReader& value) {
  ScheduleSetting setting;
  if (value.is_text()) {
    setting.schedule = parse_pruning_schedule(value.text(), value.place());
    return setting;
  }
  read_fields<ScheduleSetting>(value, schedule_fields(), setting);
  value.only(keys_of<ScheduleSetting>(schedule_fields()));
  if (!has_steps(setting.schedule) && setting.steps > 1) {
    value.fail("\"steps\" needs \"schedule\": \"linear\", \"agp\" or \"lottery\"");
  }
  return setting;
}

CalibrationSetting read_calibration(const JsonReader& value) {
  value.only({"data", "samples", "image"});
  CalibrationSetting setting;
  if (!value.has("data")) value.fail("no \"data\"");
  setting.data = value.at("data").text();
  if (const auto samples = value.find("samples")) setting.samples = samples->small(1);
  if (const auto image = value.find("image")) setting.image = image->text();
  return setting;
}

std::vector<std::string> read_recover(const JsonReader& value) {
  constexpr std::array<std::string_view, 6> kKnown = {
      "bias", "bn", "least-squares", "outputs", "outputs:blocks", "finetune"};
  std::vector<std::string> words;
  const auto add = [&](const JsonReader& word) {
    words.emplace_back(kKnown[word.word(kKnown)]);
    if (std::find(words.begin(), words.end() - 1, words.back()) != words.end() - 1) {
      word.fail('"' + words.back() + "\" occurs twice");
    }
  };
  if (value.is_text()) {
    add(value);
  } else {
    for (const JsonReader word : list_of(value, "strings")) add(word);
  }
  return words;
}

// The amounts that several cuts remove.
namespace {

/// Returns the share of all channels removed when a share `done` of the cuts is made.
double share_removed(PruningSchedule schedule, double done, double ratio) {
  switch (schedule) {
    case PruningSchedule::kLinear:
      return ratio * done;
    case PruningSchedule::kAgp:
      return ratio * (1 - std::pow(1 - done, 3));
    case PruningSchedule::kLottery:
      return 1 - std::pow(1 - ratio, done);
    case PruningSchedule::kOneShot:
    case PruningSchedule::kAnnealing:
      break;  // one cut
  }
  return ratio;
}

}  // namespace

bool asks_for(const ConfigList& config, std::string_view criterion) {
  return std::any_of(config.entries.begin(), config.entries.end(), [&](const ConfigEntry& entry) {
    return !entry.exclude && entry.request.criterion == criterion;
  });
}

ConfigList at_sparsity(ConfigList config, double ratio, const std::string& criterion) {
  for (ConfigEntry& entry : config.entries) {
    Request& request = entry.request;
    if (entry.exclude || (request.ratio == 0 && !request.amount && !request.threshold)) continue;
    request.ratio = ratio;
    request.amount.reset();
    request.also.clear();
    request.threshold.reset();
    if (criterion.empty()) continue;
    request.criterion = criterion;
    request.criteria.clear();
  }
  return config;
}

std::vector<double> sparsities(const PruneSettings& settings, double ratio) {
  std::vector<double> result;
  for (int step = 1; step < settings.steps; ++step) {
    const double done = static_cast<double>(step) / settings.steps;
    result.push_back(share_removed(settings.schedule, done, ratio));
  }
  result.push_back(ratio);
  return result;
}

std::vector<ConfigList> cuts(const PruneSettings& settings) {
  std::vector<ConfigList> result(sparsities(settings, 0).size(), settings.config);
  for (size_t e = 0; e < settings.config.entries.size(); ++e) {
    double removed = 0;
    const std::vector<double> targets =
        sparsities(settings, settings.config.entries[e].request.ratio);
    for (size_t i = 0; i < targets.size(); ++i) {
      // Rounding must not cost a channel.
      const double share = removed > 0 ? 1 - (1 - targets[i]) / (1 - removed) + 1e-9 : targets[i];
      result[i].entries[e].request.ratio = share;
      removed = targets[i];
    }
  }
  return result;
}

namespace {

/// Returns the error about a bad --loss.
ConfigError bad_loss(std::string_view text, std::span<const std::string_view> known) {
  return ConfigError(
      "loss: found ", in_quotes(text), ", expected ", one_of(known),
      "; with options behind it (huber:delta=0.5, cross_entropy:ignore=255, ctc:blank=0, "
      "weight=2), or for each output its own: boxes=huber,scores=cross_entropy");
}

constexpr auto kLossNames =
    std::to_array<std::string_view>({"cross_entropy", "bce", "mse", "l1", "huber", "kl", "ctc"});

std::optional<LossKind> loss_kind_of(std::string_view name) {
  const auto found = std::ranges::find(kLossNames, name);
  if (found == kLossNames.end()) return {};
  return static_cast<LossKind>(found - kLossNames.begin());
}

/// One "key=value" behind the kind; false for an unknown one, or a value that does not fit.
bool read_loss_option(std::string_view text, LossTerm& term) {
  const size_t at = std::min(text.find('='), text.size());
  const std::string_view key = text.substr(0, at);
  const std::string_view value = text.substr(std::min(at + 1, text.size()));
  const auto number = number_of<double>(value);
  const auto whole = number_of<int64_t>(value);
  const bool positive = number && std::isfinite(*number) && *number > 0;
  if (key == "weight" && positive) {
    term.weight = *number;
  } else if (key == "delta" && positive && term.kind == LossKind::kHuber) {
    term.delta = *number;
  } else if (key == "ignore" && whole && term.kind == LossKind::kCrossEntropy) {
    term.ignore = *whole;
  } else if (key == "blank" && whole.value_or(-1) >= 0 && term.kind == LossKind::kCtc) {
    term.blank = *whole;
  } else {
    return false;
  }
  return true;
}

LossTerm parse_loss(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  // Names of outputs may have colons themselves: the kind is the last part that is one.
  for (size_t i = parts.size(); i-- > 0;) {
    const size_t equals = parts[i].rfind('=');
    const bool named = equals != std::string_view::npos;
    const auto kind = loss_kind_of(named ? parts[i].substr(equals + 1) : parts[i]);
    if (!kind || (i > 0 && !named)) continue;
    LossTerm term;
    term.kind = *kind;
    if (named) term.output = text.substr(0, parts[i].data() + equals - text.data());
    const bool all_fit =
        std::all_of(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.end(),
                    [&](std::string_view option) { return read_loss_option(option, term); });
    if (!all_fit || (named && term.output.empty())) break;
    return term;
  }
  throw bad_loss(text, kLossNames);
}

}  // namespace

std::vector<LossTerm> parse_losses(std::string_view text) {
  std::vector<LossTerm> terms;
  for (const std::string_view one : split(text, ',')) terms.push_back(parse_loss(one));
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto same = [&](const LossTerm& term) { return term.output == terms[i].output; };
    const bool alone = terms.size() == 1 || !terms[i].output.empty();
    if (!alone || std::ranges::count_if(terms, same) > 1) throw bad_loss(text, kLossNames);
  }
  return terms;
}

std::string_view name_of(LossKind kind) { return kLossNames[static_cast<size_t>(kind)]; }

}  // namespace parsimony
