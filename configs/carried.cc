#include <algorithm>
#include <limits>

#include "parsimony/configs/carried_impl.h"
#include "parsimony/configs/errors.h"
#include "parsimony/configs/recipe.h"

namespace parsimony {

namespace {

using Json = nlohmann::json;

constexpr int kMost = std::numeric_limits<int>::max();

void check_object(const Json& value, const std::string& place,
                  const std::vector<std::string>& known) {
  if (!value.is_object()) throw errors::wrong_type(place, type_name(value), "object");
  for (const auto& [key, ignored] : value.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw errors::unknown_key(place, key, known);
    }
  }
}

}  // namespace

ScheduleSetting read_schedule(const Json& value, const std::string& place) {
  ScheduleSetting setting;
  if (value.is_string()) {
    setting.schedule = parse_pruning_schedule(value.get<std::string>(), place);
    return setting;
  }
  check_object(value, place, {"epochs_between", "schedule", "steps", "warmup_epochs"});
  const auto integer = [&](const char* key, int least, int& to) {
    if (value.contains(key)) to = read_int(value.at(key), place + '.' + key, least, kMost);
  };
  if (value.contains("schedule")) {
    const std::string at = place + ".schedule";
    setting.schedule = parse_pruning_schedule(read_string(value.at("schedule"), at), at);
  }
  integer("warmup_epochs", 0, setting.warmup_epochs);
  integer("steps", 1, setting.steps);
  integer("epochs_between", 0, setting.epochs_between);
  if (!has_steps(setting.schedule) && setting.steps > 1) {
    throw errors::contradiction(place,
                                "\"steps\" needs \"schedule\": \"linear\", \"agp\" or \"lottery\"");
  }
  return setting;
}

CalibrationSetting read_calibration(const Json& value, const std::string& place) {
  check_object(value, place, {"data", "samples"});
  if (!value.contains("data")) throw errors::contradiction(place, "no \"data\"");
  CalibrationSetting setting;
  setting.data = read_string(value.at("data"), place + ".data");
  if (value.contains("samples")) {
    setting.samples = read_int(value.at("samples"), place + ".samples", 1, kMost);
  }
  return setting;
}

std::vector<std::string> read_recover(const Json& value, const std::string& place) {
  const std::vector<std::string> known = {"bias", "bn", "least-squares", "finetune"};
  const std::vector<std::string> words =
      value.is_string() ? std::vector{value.get<std::string>()} : read_strings(value, place);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string at = value.is_string() ? place : place + '[' + std::to_string(i) + ']';
    if (std::find(known.begin(), known.end(), words[i]) == known.end()) {
      throw errors::unknown_word(at, words[i], known);
    }
    if (std::find(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i), words[i]) !=
        words.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw errors::contradiction(at, '"' + words[i] + "\" stands twice");
    }
  }
  return words;
}

}  // namespace parsimony
