// configs/recipe_schema.json and the reader know the same keys, words, ranges and defaults.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "parsimony/base/errors.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/recipe.h"

namespace parsimony {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

Json schema() {
  std::ifstream file(std::string(PARSIMONY_SOURCE_DIR) + "/configs/recipe_schema.json");
  return Json::parse(file);
}

Json properties(const char* part) { return schema().at("$defs").at(part).at("properties"); }

Names keys_of(const Json& object) {
  Names result;
  for (const auto& [key, value] : object.items()) result.push_back(key);
  return result;
}

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
           std::string(error.what()).find(" wanted ") == std::string::npos;
  }
  return true;
}

TEST(RecipeSchema, HasTheKeysOfTheReader) {
  EXPECT_EQ(keys_of(properties("train")), keys_of(settings("{}").at("train")));
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

TEST(RecipeSchema, HasTheDefaultsOfTheReader) {
  const Json read = settings(R"({"prune": {"config_list": [{"sparse_ratio": 0.5}]}})");
  for (const char* part : {"train", "prune"}) {
    const Json listed = properties(part);
    for (const auto& [key, value] : listed.items()) {
      EXPECT_EQ(value.value("default", read.at(part).value(key, Json())),
                read.at(part).value(key, Json()))
          << key;
    }
  }
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
  std::ifstream file(std::string(PARSIMONY_SOURCE_DIR) + "/configs/schema.json");
  const Json other = Json::parse(file);
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
