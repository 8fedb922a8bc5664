// configs/schema.json and the reader know the same keys and words.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "parsimony/configs/config.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/layer_names_impl.h"
#include "parsimony/pruners/criterion.h"
#include "tests/configs/json_keys.h"

namespace parsimony {
namespace {

using test::keys_of;

using Json = nlohmann::json;
using Names = std::vector<std::string>;

Json definitions() {
  std::ifstream file(std::string(PARSIMONY_SOURCE_DIR) + "/configs/schema.json");
  return Json::parse(file).at("$defs");
}

TEST(Schema, HasTheKeysOfTheReader) {
  const Json defs = definitions();
  EXPECT_EQ(keys_of(defs.at("entry").at("properties")), keys::of_entry());
  EXPECT_EQ(keys_of(defs.at("file").at("properties")), keys::of_file());
  EXPECT_EQ(keys_of(defs.at("request").at("properties")), keys::of_request());
  EXPECT_EQ(keys_of(defs.at("target").at("properties")), keys::of_target());
}

TEST(Schema, HasTheWordsOfTheReader) {
  const Json defs = definitions();
  EXPECT_EQ(defs.at("op_type").at("enum").get<Names>(), LayerNames::types());
  const Json& request = defs.at("request").at("properties");
  EXPECT_EQ(request.at("criterion").at("anyOf")[0].at("enum").get<Names>(), criterion_names());
  const auto parse = [](const char* key, const Json& word) {
    const Json document = {{key, word}, {"config_list", {{{"sparse_ratio", 0.5}}}}};
    parse_config(document.dump(), "c.json");
  };
  const std::regex several(request.at("criterion").at("anyOf")[2].at("pattern").get<std::string>());
  for (const std::string& names : Names{"obs,fisher", "l1, l2"}) {
    EXPECT_TRUE(std::regex_match(names, several));
    EXPECT_NO_THROW(parse("criterion", names));
  }
  const Json& scopes = request.at("scope").at("anyOf");
  for (const Json& word : scopes[0].at("enum")) EXPECT_NO_THROW(parse("scope", word));
  EXPECT_TRUE(
      std::regex_match("local, global", std::regex(scopes[1].at("pattern").get<std::string>())));
  EXPECT_NO_THROW(parse("scope", "local, global"));
  for (const Json& word : request.at("budget").at("anyOf").at(0).at("enum")) {
    EXPECT_NO_THROW(parse("budget", word));
  }
  const Json& amounts = request.at("budget").at("anyOf").at(1).at("properties");
  for (const std::string& amount : keys_of(amounts)) {
    EXPECT_NO_THROW(parse_config(R"([{"budget": {")" + amount + R"(": 5}}])", "c.json"));
  }
  for (const Json& word : request.at("granularity").at("anyOf").at(0).at("enum")) {
    EXPECT_NO_THROW(parse("granularity", word));
  }
  for (const Json& word : request.at("apply_method").at("enum")) {
    EXPECT_NO_THROW(parse("apply_method", word));
  }
  for (const Json& word : defs.at("recovery").at("enum")) EXPECT_NO_THROW(parse("recover", word));
  const Json& file = defs.at("file").at("properties");
  for (const Json& word : file.at("schedule").at("anyOf").at(0).at("enum")) {
    EXPECT_NO_THROW(parse("schedule", word));
  }
}

TEST(Schema, AndTheDocumentsHaveTheSameKeys) {
  std::ifstream file(std::string(PARSIMONY_SOURCE_DIR) + "/docs/guide/config.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const Names& keys : {keys::of_entry(), keys::of_file()}) {
    for (const std::string& key : keys) {
      if (key == "$schema" || key == "config_list") continue;
      EXPECT_NE(text.find('`' + key + '`'), std::string::npos) << key;
    }
  }
}

TEST(Schema, DescribesEveryKey) {
  const Json defs = definitions();
  for (const char* part : {"request", "tie", "entry", "file"}) {
    for (const auto& [key, value] : defs.at(part).at("properties").items()) {
      EXPECT_TRUE(value.contains("description") || value.contains("$ref")) << key;
    }
  }
}

}  // namespace
}  // namespace parsimony
