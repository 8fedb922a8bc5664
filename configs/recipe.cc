#include "parsimony/configs/recipe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "parsimony/base/files.h"
#include "parsimony/configs/errors.h"
#include "parsimony/configs/json_impl.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {
namespace {

using Json = nlohmann::json;

template <typename Word, size_t N>
using Words = std::array<std::pair<std::string_view, Word>, N>;

constexpr Words<OptimizerKind, 4> kOptimizers = {{{"sgd", OptimizerKind::kSgd},
                                                  {"adam", OptimizerKind::kAdam},
                                                  {"adamw", OptimizerKind::kAdamW},
                                                  {"muon", OptimizerKind::kMuon}}};
constexpr Words<RateSchedule, 4> kRateSchedules = {{{"constant", RateSchedule::kConstant},
                                                    {"cosine", RateSchedule::kCosine},
                                                    {"step", RateSchedule::kStep},
                                                    {"one_cycle", RateSchedule::kOneCycle}}};
constexpr Words<Precision, 3> kPrecisions = {
    {{"fp32", Precision::kFloat32}, {"bf16", Precision::kBFloat16}, {"fp16", Precision::kFloat16}}};
constexpr Words<MemoryFormat, 3> kMemoryFormats = {
    {{"auto", MemoryFormat::kAuto},
     {"contiguous", MemoryFormat::kContiguous},
     {"channels_last", MemoryFormat::kChannelsLast}}};
constexpr Words<PruningSchedule, 5> kPruningSchedules = {
    {{"one_shot", PruningSchedule::kOneShot},
     {"linear", PruningSchedule::kLinear},
     {"agp", PruningSchedule::kAgp},
     {"lottery", PruningSchedule::kLottery},
     {"annealing", PruningSchedule::kAnnealing}}};

template <typename Word, size_t N>
Word parse_word(const Words<Word, N>& words, std::string_view text, std::string_view place) {
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.emplace_back(word);
  }
  throw errors::unknown_word(place, text, known);
}

template <typename Word, size_t N>
std::string word_of(const Words<Word, N>& words, Word wanted) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.second == wanted; });
  return std::string(found->first);
}

/// Reads the keys of one object; what nobody asked for is unknown.
class Keys {
 public:
  Keys(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object.is_object()) throw errors::wrong_type(place_, type_name(object), "object");
  }

  std::string at(std::string_view key) const { return place_of(place_, key); }

  const Json* find(std::string_view key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  void read(std::string_view key, std::string& to) {
    if (const Json* value = find(key)) to = read_string(*value, at(key));
  }

  void read(std::string_view key, bool& to) {
    if (const Json* value = find(key)) to = read_bool(*value, at(key));
  }

  void read(std::string_view key, int& to, int least) {
    if (const Json* value = find(key)) {
      to = read_int(*value, at(key), least, std::numeric_limits<int>::max());
    }
  }

  void read(std::string_view key, uint64_t& to) {
    if (const Json* value = find(key)) {
      to = static_cast<uint64_t>(read_int(*value, at(key), 0, std::numeric_limits<int>::max()));
    }
  }

  void read(std::string_view key, double& to, double most, bool zero_allowed) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number()) throw errors::wrong_type(at(key), type_name(*value), "number");
    const double number = value->get<double>();
    if (!(number <= most && (zero_allowed ? number >= 0 : number > 0))) {
      const std::string least = zero_allowed ? "[0, " : "(0, ";
      throw errors::out_of_range(at(key), value->dump(),
                                 least + (std::isfinite(most) ? Json(most).dump() + "]" : "∞)"));
    }
    to = number;
  }

  template <typename Parse, typename Word>
  void read_word(std::string_view key, Parse parse, Word& to) {
    if (const Json* value = find(key)) to = parse(read_string(*value, at(key)), at(key));
  }

  const std::vector<std::string>& known() const { return known_; }

  void refuse_others() {
    std::sort(known_.begin(), known_.end());
    for (const auto& [key, value] : object_.items()) {
      if (!std::binary_search(known_.begin(), known_.end(), key)) {
        throw errors::unknown_key(place_, key, known_);
      }
    }
  }

 private:
  const Json& object_;
  std::string place_;
  std::vector<std::string> known_;
};

constexpr double kAny = std::numeric_limits<double>::infinity();

TrainSettings read_train(const Json& object, const std::string& place) {
  TrainSettings train;
  Keys keys(object, place);
  keys.read("epochs", train.epochs, 0);
  keys.read("batch", train.batch, 1);
  keys.read_word("optimizer", parse_optimizer, train.optimizer);
  keys.read("lr", train.lr, kAny, false);
  keys.read("momentum", train.momentum, 1, true);
  keys.read("weight_decay", train.weight_decay, kAny, true);
  keys.read_word("schedule", parse_rate_schedule, train.schedule);
  keys.read("step_epochs", train.step_epochs, 1);
  keys.read("step_factor", train.step_factor, 1, false);
  keys.read("label_smoothing", train.label_smoothing, 1, true);
  keys.read("flip", train.flip);
  keys.read("crop", train.crop, 0);
  keys.read("cutout", train.cutout, 0);
  keys.read("normalise", train.normalise);
  keys.read("evaluate_every", train.evaluate_every, 0);
  keys.read("early_stop", train.early_stop, 0);
  keys.read("batch_norm", train.batch_norm);
  keys.read("distill", train.distill, 1, true);
  keys.read("temperature", train.temperature, kAny, false);
  keys.read_word("precision", parse_precision, train.precision);
  keys.read_word("memory_format", parse_memory_format, train.memory_format);
  keys.read("seed", train.seed);
  keys.refuse_others();
  check_settings(train, place);
  return train;
}

/// Keys of one schedule say nothing to another.
void check_schedule(const Json& object, const PruneSettings& prune, const std::string& place) {
  if (!has_steps(prune.schedule) && prune.steps > 1) {
    throw errors::contradiction(place,
                                "\"steps\" needs \"schedule\": \"linear\", \"agp\" or \"lottery\"");
  }
  if (prune.schedule != PruningSchedule::kLottery && object.contains("rewind_epoch")) {
    throw errors::contradiction(place, "\"rewind_epoch\" needs \"schedule\": \"lottery\"");
  }
  if (prune.rewind_epoch > prune.warmup_epochs) {
    throw errors::contradiction(place, "\"rewind_epoch\" is above \"warmup_epochs\"");
  }
  for (const std::string_view key : {"search_steps", "search_samples"}) {
    if (prune.schedule != PruningSchedule::kAnnealing && object.contains(key)) {
      throw errors::contradiction(place,
                                  '"' + std::string(key) + "\" needs \"schedule\": \"annealing\"");
    }
  }
  if (prune.schedule != PruningSchedule::kAnnealing) return;
  for (const ConfigEntry& entry : prune.config.entries) {
    if (entry.request.budget == Budget::kChannels) continue;
    throw errors::contradiction(place,
                                "\"annealing\" moves channels between layers: its budget is "
                                "\"channels\"");
  }
}

PenaltySettings read_penalty(const Json& object, const std::string& place) {
  PenaltySettings penalty;
  Keys keys(object, place);
  keys.read("slimming", penalty.slimming, kAny, true);
  keys.read("group", penalty.group, kAny, true);
  keys.refuse_others();
  return penalty;
}

PruneSettings read_prune(const Json& object, const std::string& place) {
  PruneSettings prune;
  Keys keys(object, place);
  keys.read("warmup_epochs", prune.warmup_epochs, 0);
  keys.read_word("schedule", parse_pruning_schedule, prune.schedule);
  keys.read("steps", prune.steps, 1);
  keys.read("epochs_between", prune.epochs_between, 0);
  keys.read("rewind_epoch", prune.rewind_epoch, 0);
  keys.read("search_steps", prune.search_steps, 1);
  keys.read("search_samples", prune.search_samples, 1);
  if (const Json* penalty = keys.find("penalty")) {
    prune.penalty = read_penalty(*penalty, keys.at("penalty"));
  }
  // The rest is a configuration as `prune --config` reads it.
  Json config = object;
  for (const std::string_view own : keys.known()) config.erase(std::string(own));
  for (const std::string& key : keys::of_file()) keys.find(key);
  keys.refuse_others();
  config.erase("$schema");
  prune.text = config.dump();
  prune.config = parse_config(prune.text, place);
  check_schedule(object, prune, place);
  return prune;
}

SweepSettings read_sweep(const Json& object, const std::string& place) {
  SweepSettings sweep;
  Keys keys(object, place);
  const auto each = [&](std::string_view key, const auto& read) {
    const Json* list = keys.find(key);
    if (list == nullptr) return;
    if (!list->is_array()) throw errors::wrong_type(keys.at(key), type_name(*list), "array");
    if (list->empty()) throw errors::contradiction(keys.at(key), "the list is empty");
    for (size_t i = 0; i < list->size(); ++i) {
      read((*list)[i], keys.at(key) + '[' + std::to_string(i) + ']');
    }
  };
  each("sparsity", [&](const Json& value, const std::string& at) {
    sweep.sparsity.push_back(read_ratio(value, at, false));
  });
  each("criterion", [&](const Json& value, const std::string& at) {
    sweep.criterion.push_back(parse_criterion(read_string(value, at), at));
    if (find_criterion(sweep.criterion.back()).score == nullptr) {
      throw errors::contradiction(at, '"' + sweep.criterion.back() +
                                          "\" zeroes single elements, and training would fill "
                                          "them again");
    }
  });
  each("seed", [&](const Json& value, const std::string& at) {
    sweep.seed.push_back(
        static_cast<uint64_t>(read_int(value, at, 0, std::numeric_limits<int>::max())));
  });
  keys.refuse_others();
  if (sweep.sparsity.empty()) throw errors::contradiction(place, "no \"sparsity\"");
  return sweep;
}

}  // namespace

void check_settings(const TrainSettings& train, std::string_view place) {
  if (train.early_stop > 0 && train.evaluate_every != 1) {
    throw errors::contradiction(place, "\"early_stop\" needs \"evaluate_every\": 1");
  }
}

bool has_steps(PruningSchedule schedule) {
  return schedule == PruningSchedule::kLinear || schedule == PruningSchedule::kAgp ||
         schedule == PruningSchedule::kLottery;
}

PruningSchedule parse_pruning_schedule(std::string_view text, std::string_view place) {
  return parse_word(kPruningSchedules, text, place);
}

OptimizerKind parse_optimizer(std::string_view text, std::string_view place) {
  return parse_word(kOptimizers, text, place);
}

RateSchedule parse_rate_schedule(std::string_view text, std::string_view place) {
  return parse_word(kRateSchedules, text, place);
}

Precision parse_precision(std::string_view text, std::string_view place) {
  return parse_word(kPrecisions, text, place);
}

MemoryFormat parse_memory_format(std::string_view text, std::string_view place) {
  return parse_word(kMemoryFormats, text, place);
}

Recipe parse_recipe(std::string_view json, std::string_view file_name) {
  const Json document = parse_json(json, file_name);
  Recipe recipe;
  Keys keys(document, std::string(file_name));
  keys.find("$schema");
  keys.read("model", recipe.model);
  keys.read("data", recipe.data);
  if (const Json* train = keys.find("train")) recipe.train = read_train(*train, keys.at("train"));
  if (const Json* prune = keys.find("prune")) recipe.prune = read_prune(*prune, keys.at("prune"));
  if (const Json* sweep = keys.find("sweep")) recipe.sweep = read_sweep(*sweep, keys.at("sweep"));
  keys.refuse_others();
  if (recipe.sweep && !recipe.prune) {
    throw errors::contradiction(file_name, "\"sweep\" without \"prune\"");
  }
  return recipe;
}

Recipe read_recipe(const std::string& path) { return parse_recipe(read_file(path), path); }

std::string settings_json(const Recipe& recipe) {
  const TrainSettings& t = recipe.train;
  nlohmann::ordered_json json;
  json["train"] = {{"epochs", t.epochs},
                   {"batch", t.batch},
                   {"optimizer", word_of(kOptimizers, t.optimizer)},
                   {"lr", t.lr},
                   {"momentum", t.momentum},
                   {"weight_decay", t.weight_decay},
                   {"schedule", word_of(kRateSchedules, t.schedule)},
                   {"step_epochs", t.step_epochs},
                   {"step_factor", t.step_factor},
                   {"label_smoothing", t.label_smoothing},
                   {"flip", t.flip},
                   {"crop", t.crop},
                   {"cutout", t.cutout},
                   {"normalise", t.normalise},
                   {"evaluate_every", t.evaluate_every},
                   {"early_stop", t.early_stop},
                   {"batch_norm", t.batch_norm},
                   {"distill", t.distill},
                   {"temperature", t.temperature},
                   {"precision", word_of(kPrecisions, t.precision)},
                   {"memory_format", word_of(kMemoryFormats, t.memory_format)},
                   {"seed", t.seed}};
  if (recipe.prune) {
    json["prune"] = nlohmann::ordered_json::parse(recipe.prune->text);
    json["prune"]["warmup_epochs"] = recipe.prune->warmup_epochs;
    json["prune"]["schedule"] = word_of(kPruningSchedules, recipe.prune->schedule);
    json["prune"]["steps"] = recipe.prune->steps;
    json["prune"]["epochs_between"] = recipe.prune->epochs_between;
    json["prune"]["rewind_epoch"] = recipe.prune->rewind_epoch;
    json["prune"]["search_steps"] = recipe.prune->search_steps;
    json["prune"]["search_samples"] = recipe.prune->search_samples;
    const PenaltySettings& penalty = recipe.prune->penalty;
    json["prune"]["penalty"] = {{"slimming", penalty.slimming}, {"group", penalty.group}};
  }
  return json.dump();
}

}  // namespace parsimony
