// configs/recipe_schema.json and docs/guide/training.md say of the settings what their tables say,
// and the reader takes what they allow. PARSIMONY_UPDATE_FIXTURES=1 writes both again.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/configs/fields.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/recipe.h"
#include "tests/configs/json_keys.h"
#include "tests/support/fields.h"
#include "tests/support/made.h"

namespace parsimony {
namespace {

using test::expect_made;
using test::expect_made_between;
using test::keys_of;
using test::property;

using Json = nlohmann::json;
using Names = std::vector<std::string>;

Json schema() {
  return Json::parse(read_file(std::string(PARSIMONY_SOURCE_DIR) + "/configs/recipe_schema.json"));
}

Json properties(const char* part) { return schema().at("$defs").at(part).at("properties"); }

Json settings(const std::string& recipe) {
  return Json::parse(settings_json(parse_recipe(recipe, "r")));
}

/// Does the reader take `value` there?
bool takes(const char* part, const std::string& key, const Json& value) {
  Json document = {{part, {{key, value}}}};
  if (std::string(part) == "prune") {
    document[part]["config_list"] = {{{"sparse_ratio", 0.5}}};
    if (key == "steps") document[part]["schedule"] = "agp";
    if (key == "rewind_epoch") document[part]["schedule"] = "lottery";
    if (key == "rewind_epoch") document[part]["warmup_epochs"] = 2147483647;
    if (key.starts_with("search_")) document[part]["schedule"] = "annealing";
  }
  try {
    parse_recipe(document.dump(), "r");
  } catch (const ConfigError& error) {
    return std::string(error.what()).find(" is not in ") == std::string::npos &&
           std::string(error.what()).find(" expected ") == std::string::npos;
  }
  return true;
}

using Ordered = nlohmann::ordered_json;

std::string file_text(const std::string& name) {
  return read_file(std::string(PARSIMONY_SOURCE_DIR) + "/" + name);
}

template <typename Owner>
void put(std::span<const Field<Owner>> fields, Ordered& properties) {
  for (const Field<Owner>& field : fields) properties[std::string(field.key)] = property(field);
}

std::string schema_of_tables() {
  Ordered schema = Ordered::parse(file_text("configs/recipe_schema.json"));
  Ordered& train = schema["$defs"]["train"]["properties"];
  Ordered& prune = schema["$defs"]["prune"]["properties"];
  train = Ordered::object();
  put(train_fields(), train);
  put(prune_fields(), prune);
  put(penalty_fields(), prune["penalty"]["properties"]);
  return schema.dump(2) + "\n";
}

/// The rows of the document's table.
std::string rows_of_tables() {
  std::string text = "| key of `train` | default | values | |\n|---|---|---|---|\n";
  for (const Field<TrainSettings>& field : train_fields()) {
    const Ordered json = property(field);
    const bool is_word = json.contains("enum");
    const std::string usual =
        is_word ? "`" + json["default"].get<std::string>() + "`" : json["default"].dump();
    std::string values;
    for (const auto& word : json.value("enum", Ordered::array())) {
      values += (values.empty() ? "`" : ", `") + word.get<std::string>() + "`";
    }
    if (json.value("type", "") == "string") {
      values = "text";
    } else if (json.value("type", "") == "array") {
      values = "list of numbers";
    } else if (!is_word) {
      values = json["type"] == "boolean" ? "true, false" : field.interval.text();
    }
    text += "| `" + std::string(field.key) + "` | " + usual + " | " + values + " | " +
            std::string(field.meaning) + " |\n";
  }
  return text;
}

TEST(RecipeSchema, IsMadeOfTheTables) {
  expect_made("configs/recipe_schema.json", schema_of_tables());
}

TEST(RecipeSchema, AndTheDocumentHasItToo) {
  expect_made_between("docs/guide/training.md", "train", rows_of_tables());
}

TEST(RecipeSchema, HasTheKeysOfTheReader) {
  EXPECT_EQ(
      keys_of(properties("train")),
      keys_of(settings(R"({"train": {"loss": "mse", "mean": [0], "std": [1]}})").at("train")));
  Names prune = keys::of_file();
  for (const char* own : {"warmup_epochs", "schedule", "steps", "epochs_between", "rewind_epoch",
                          "search_steps", "search_samples", "penalty"}) {
    prune.emplace_back(own);
  }
  std::sort(prune.begin(), prune.end());
  prune.erase(std::unique(prune.begin(), prune.end()), prune.end());  // a schedule of its own
  EXPECT_EQ(keys_of(properties("prune")), prune);
  EXPECT_EQ(keys_of(properties("sweep")), (Names{"criterion", "seed", "sparsity"}));
  EXPECT_EQ(keys_of(schema().at("properties")),
            (Names{"$schema", "data", "model", "prune", "sweep", "train"}));
}

/// Values at the borders that the schema names, and whether they are inside.
std::vector<std::pair<Json, bool>> probes(const Json& property) {
  std::vector<std::pair<Json, bool>> values;
  for (const Json& word : property.value("enum", Json::array())) values.emplace_back(word, true);
  if (!values.empty()) values.emplace_back("other", false);
  if (property.contains("minimum")) {
    values.emplace_back(property.at("minimum"), true);
    values.emplace_back(property.at("minimum").get<int64_t>() - 1, false);
  }
  if (property.contains("exclusiveMinimum")) {
    values.emplace_back(property.at("exclusiveMinimum"), false);
    values.emplace_back(1e-30, true);
  }
  if (property.contains("maximum")) {
    values.emplace_back(property.at("maximum"), true);
    values.emplace_back(property.at("maximum").get<int64_t>() + 1, false);
  } else if (property.value("type", "") == "number") {
    values.emplace_back(1e30, true);
  }
  return values;
}

TEST(RecipeSchema, HasTheWordsAndRangesOfTheReader) {
  size_t probed = 0;
  for (const char* part : {"train", "prune"}) {
    const Json listed = properties(part);
    for (const auto& [key, property] : listed.items()) {
      for (const auto& [value, inside] : probes(property)) {
        EXPECT_EQ(takes(part, key, value), inside) << key << ": " << value;
        ++probed;
      }
    }
  }
  EXPECT_GT(probed, 60U);
}

TEST(RecipeSchema, DescribesEveryKey) {
  for (const char* part : {"train", "prune", "sweep"}) {
    const Json listed = properties(part);
    for (const auto& [key, value] : listed.items()) {
      EXPECT_TRUE(value.contains("description") || value.contains("$ref")) << key;
    }
  }
}

TEST(RecipeSchema, PointsToWhatTheOtherSchemaHas) {
  const Json other = Json::parse(file_text("configs/schema.json"));
  const Json listed = properties("prune");
  for (const auto& [key, value] : listed.items()) {
    if (!value.contains("$ref")) continue;
    const std::string target = value.at("$ref");
    ASSERT_TRUE(target.starts_with("schema.json#/")) << key;
    EXPECT_TRUE(other.contains(Json::json_pointer(target.substr(12)))) << target;
  }
}

}  // namespace
}  // namespace parsimony
