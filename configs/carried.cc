#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/configs/fields.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/configs/request_impl.h"

namespace parsimony {

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
  constexpr std::array<std::string_view, 5> kKnown = {"bias", "bn", "least-squares", "outputs",
                                                      "finetune"};
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

}  // namespace parsimony
