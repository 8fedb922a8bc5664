// Every setting is a key of a request as JSON, and what is made of the tables is what they say.
#include "parsimony/api/prune_settings.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "parsimony/base/errors.h"
#include "parsimony/configs/config.h"
#include "parsimony/speedup/recovery.h"
#include "tests/support/fields.h"
#include "tests/support/made.h"
#include "tests/support/message_of.h"

namespace parsimony {
namespace {

using Json = nlohmann::ordered_json;

PruneRequest again(const PruneRequest& request) {
  return parse_request(to_json(request), "request.json");
}

std::string request_error(const std::string& json) {
  return test::message_of<ConfigError>([&] { parse_request(json, "r.json"); });
}

TEST(PruneRequest, EveryRecoveryMayStandInAConfiguration) {
  for (const std::string& name : recovery_names()) {
    const std::string config =
        R"({"config_list": [{"sparse_ratio": 0.5}], "recover": [")" + name + R"("]})";
    EXPECT_NO_THROW(parse_config(config, "c.json")) << name;
  }
}

/// All rows, as a schema describes them, by their keys.
std::vector<std::pair<std::string, Json>> all_settings(bool of_command) {
  std::vector<std::pair<std::string, Json>> rows;
  const auto add = [&](const auto& table, const auto&) {
    for (const auto& field : table) {
      if (of_command && field.only_in_files) continue;
      rows.emplace_back(field.key, test::property(field));
    }
  };
  add(shorthand_settings(), Shorthand());
  const PruneRequest request;
  visit_settings(request, add);
  return rows;
}

/// A value other than the default.
Json other_than_default(const std::string& key, const Json& property) {
  static const std::map<std::string, Json> own = {
      {"criterion", "l2"},      {"scope", "global"},
      {"budget", "macs=50%"},   {"round_to", 8},
      {"target", "arm-neon"},   {"granularity", "head"},
      {"layers", "25%"},        {"input", {"x=2x8:int64", "?"}},
      {"threads", 3},           {"loss", "huber:delta=0.5"},
      {"recover", {"bias"}},    {"match", {"h", "a=b=1.0", "y=0.25"}},
      {"ratio", "50%"},         {"latency_command", "time {model}"},
      {"latency_rounds", 4},    {"std", {0.5, 0.25}},
      {"mean", {0.1, 1.0 / 3}}, {"seed", 18446744073709551615U}};
  if (own.contains(key)) return own.at(key);
  if (property.contains("enum")) return property["enum"].back();
  if (property["type"] == "boolean") return !property.at("default").get<bool>();
  if (property["type"] == "string") return "other";
  if (property.contains("items")) return {"one", "two"};
  return property["type"] == "integer" ? Json(7) : Json(0.1);
}

TEST(PruneSettings, EveryKeyIsReadAndWritten) {
  for (const Field<Shorthand>& field : shorthand_settings()) {
    Shorthand shorthand;
    const Json value = other_than_default(std::string(field.key), test::property(field));
    const JsonDocument document(value.dump(), "value");
    read_field(document.root(), field, shorthand);
    EXPECT_NE(json_value(field, shorthand), json_value(field, Shorthand())) << field.key;
  }
  const PruneRequest none;
  std::set<std::string> seen;
  visit_settings(none, [&](const auto& table, const auto&) {
    for (const auto& field : table) {
      const std::string key(field.key);
      EXPECT_TRUE(seen.insert(key).second) << key << " is there twice";
      Json json = {{key, other_than_default(key, test::property(field))}};
      if (key == "mean" || key == "std") {
        json = {{"calibration", "npz:x.npz"}, {"mean", {0.1, 0.2}}, {"std", {0.5, 0.25}}};
      }
      const PruneRequest request = parse_request(json.dump(), "r.json");
      EXPECT_NE(request, none) << key;
      EXPECT_EQ(again(request), request) << to_json(request);
    }
  });
  EXPECT_EQ(to_json(none), "{}");
}

TEST(PruneSettings, AConfigurationGoesWithThem) {
  PruneRequest request = parse_config(R"({
      "criterion": "taylor", "scope": "global", "granularity": "head", "force": true,
      "schedule": {"schedule": "agp", "steps": 4}, "recover": ["bias", "finetune"],
      "calibration": {"data": "npz:x.npz", "samples": 32, "image": "crop=8"},
      "config_list": [
        {"op_types": ["Conv"], "sparse_ratio": 0.3, "exclude_op_names": ["a"], "round_to": 8},
        {"op_names_re": ["b.*"], "budget": {"macs": "33.3333333%", "latency_ms": 5}},
        {"op_names": ["c"], "align": {"module_name": "d"}, "min_sparse_ratio": 0.1},
        {"op_names": ["e"], "sparse_threshold": 0.01, "scope": "local"},
        {"op_names": ["f"], "criterion": "2:4", "scope": "local"},
        {"op_names": ["g"], "criterion": "level", "total_sparsity": 0.8},
        {"op_names": ["h"], "sparse_ratio": 0.5, "global_group_id": 3, "round_to": "arm-neon"},
        {"op_names": ["i"], "sparse_ratio": 0.5, "granularity": [1, -1, -1, -1]},
        {"op_names": ["j"], "sparse_ratio": 0.5, "granularity": [4, 1], "criterion": "l1",
         "scope": "local"},
        {"op_partial_names": ["k"], "exclude": true}]})",
                                      "c.json");
  request.recovery.finetune.lr = 0.1;
  request.recovery.finetune.epochs = 9;
  EXPECT_EQ(again(request), request) << to_json(request);
  request.recovery.outputs.epochs = 3;
  EXPECT_EQ(again(request), request) << to_json(request);
  request = from_shorthand({.criterion = "l2", .ratio = 0.7, .exclude = {"fc"}, .force = true});
  EXPECT_EQ(again(request), request) << to_json(request);
}

TEST(PruneSettings, PercentagesMeanTheSameAgain) {
  for (const double share : {0.3, 0.07, 1.0 / 3, 0.1 + 0.2, 0.0123456789012345678, 2.0 / 3}) {
    PruneRequest request;
    request.depth = DepthRequest{DepthRequest::Kind::kFraction, 0, share};
    request.config = from_shorthand({.budget = "macs=50%,params=25%"});
    Request& asked = request.config.entries.front().request;
    asked.ratio = share;
    asked.also.front().ratio = share / 7;
    EXPECT_EQ(again(request), request) << to_json(request);
  }
  EXPECT_EQ(from_shorthand({.budget = "macs=70%"}).entries.front().request.ratio, 0.3);
}

TEST(PruneSettings, ANumberOfSamplesTakesPrecedence) {
  PruneRequest request;
  request.config.calibration = CalibrationSetting{.data = "npz:x.npz", .samples = 32};
  EXPECT_EQ(calibration_of(request).sample_count(), 32);
  request.calibration.samples = 256;
  EXPECT_EQ(calibration_of(request).sample_count(), 256);
  EXPECT_EQ(again(request), request) << to_json(request);
  EXPECT_EQ(calibration_of({}).sample_count(), 256);
}

TEST(PruneSettings, AConfigurationNeedsNoEntries) {
  PruneRequest request;
  request.config.force = true;
  request.config.granularity = Granularity::kHead;
  request.config.schedule = ScheduleSetting();
  request.config.calibration = CalibrationSetting{.data = "npz:x.npz", .samples = 32};
  request.config.recover = {"bias"};
  EXPECT_EQ(again(request), request) << to_json(request);
  EXPECT_EQ(request_error(R"({"config": {"criterion": "l2"}})"),
            "r.json: config: no \"config_list\"");
}

TEST(PruneSettings, MeansAreThoseOfTheConfigurationsData) {
  const std::string means = R"("mean": [0.5], "std": [0.25]})";
  const PruneRequest request = parse_request(
      R"({"config": {"config_list": [{"sparse_ratio": 0.5}],
                     "calibration": {"data": "cifar10:DIR"}}, )" +
          means,
      "r.json");
  EXPECT_EQ(calibration_of(request).data, "cifar10:DIR");
  EXPECT_EQ(calibration_of(request).mean, std::vector<double>{0.5});
  EXPECT_EQ(again(request), request) << to_json(request);
  EXPECT_EQ(request_error("{" + means), "--mean requires --calibration DATA");
}

TEST(PruneSettings, ThatStandForAConfiguration) {
  const PruneRequest request =
      parse_request(R"({"ratio": "30%", "exclude": ["fc"], "seed": 3})", "r.json");
  PruneRequest expected = from_shorthand({.ratio = 0.3, .exclude = {"fc"}});
  expected.seed = 3;
  EXPECT_EQ(request, expected);
  const PruneRequest automatic = parse_request(R"({"ratio": 0.5, "round_to": "auto"})", "r.json");
  EXPECT_TRUE(automatic.config.entries.front().request.target.has_value());
}

TEST(PruneSettings, WhatIsWrong) {
  EXPECT_EQ(request_error(R"({"sede": 3})"),
            "r.json: unknown key \"sede\". Did you mean \"seed\"?");
  EXPECT_EQ(request_error(R"({"config": [{"sparse_ratio": 0.5}], "ratio": 0.5})"),
            "r.json: ratio: cannot be combined with \"config\"; set it there");
  EXPECT_EQ(request_error(R"({"config": [{"sparse_ratio": 2}]})"),
            "r.json: config: config_list[0].sparse_ratio: found 2, expected a number in [0, 1)");
  EXPECT_EQ(request_error(R"({"exact_only": true, "allow_mixing": true})"),
            "r.json: \"exact_only\" and \"allow_mixing\" cannot be combined");
  EXPECT_EQ(request_error(R"({"exact_only": false, "allow_mixing": true})"), "");
  EXPECT_EQ(request_error(R"({"ratio": 0.5, "round_to": "many"})"),
            "r.json: round_to: found \"many\", expected a whole number or auto");
  EXPECT_EQ(request_error(R"({"ratio": 0.5, "target": "arm-neon"})"),
            "--target requires --round-to auto");
  EXPECT_EQ(request_error(R"({"ratio": 0.5, "round_to": "auto", "target": "arm-neon"})"), "");
  EXPECT_EQ(request_error(R"({"latency_command": "time"})"),
            "r.json: latency_command: found \"time\", expected a command with {model} in it");
  EXPECT_EQ(request_error(R"({"constants": "gone"})"),
            "r.json: constants: found \"gone\", expected \"drop\" or \"exact\"");
  EXPECT_EQ(request_error(R"({"ratio": "150%"})"),
            "r.json: ratio: found \"150%\", expected a share in [0, 1), as 0.5 or 50%");
  EXPECT_EQ(request_error(R"({"latency_runs": 0})"),
            "r.json: latency_runs: found 0, expected an integer from 1 to 1000");
  PruneRequest masked;
  masked.masks.push_back({"w", {1}, {0}});
  EXPECT_THROW(to_json(masked), ConfigError);
}

/// A row of the guide's table.
std::string guide_row(const std::string& key, const Json& property) {
  const bool is_text = property.contains("default") && property["default"].is_string();
  std::string usual = property.contains("default") ? property["default"].dump() : "";
  if (is_text) usual = usual.substr(1, usual.size() - 2);
  std::string help = property["description"];
  for (size_t at = 0; (at = help.find('|', at)) != std::string::npos; at += 2)
    help.insert(at, "\\");
  return "| `" + key + "` | " + (usual.empty() || usual == "[]" ? "" : "`" + usual + "`") + " | " +
         help + " |\n";
}

TEST(PruneSettings, AreTheTableOfTheGuide) {
  std::string text = "| name | default | |\n|---|---|---|\n";
  for (const auto& [key, property] : all_settings(/*of_command=*/false))
    text += guide_row(key, property);
  test::expect_made_between("docs/guide/settings.md", "settings", text);
}

/// Of a keyword in Python, where a budget may be a dictionary as well, and a share in percent.
std::string annotation(const std::string& key, const Json& property) {
  if (key == "budget") return "Union[str, Mapping[str, Any]]";
  if (key == "ratio") return "Union[str, float]";
  if (property.contains("items")) {
    return property["items"]["type"] == "string" ? "Sequence[str]" : "Sequence[float]";
  }
  if (property.contains("enum") || property["type"] == "string") return "str";
  if (property["type"].is_array()) return "Union[str, int]";
  return property["type"] == "boolean" ? "bool" : property["type"] == "integer" ? "int" : "float";
}

std::string python_text(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  const std::string text = value.is_string() ? value.get<std::string>() : std::string();
  return text.find('"') == std::string::npos ? value.dump() : "'" + text + "'";
}

TEST(PruneSettings, AreKeywordsInPython) {
  std::string text =
      "\"\"\"The settings of a pruning, as the command takes them. Made from "
      "api/prune_settings.cc.\"\"\"\n\n"
      "from __future__ import annotations\n\n"
      "from typing import Any, Dict, Mapping, NamedTuple, Sequence, TypedDict, Union\n\n\n"
      "class Setting(NamedTuple):\n"
      "    default: Any\n"
      "    help: str\n\n\n";
  std::string types = "class Settings(TypedDict, total=False):\n";
  std::string rows = "SETTINGS: Dict[str, Setting] = {\n";
  for (const auto& [key, property] : all_settings(/*of_command=*/true)) {
    const Json usual = property.contains("default") ? property["default"] : Json(nullptr);
    const bool is_argument = key == "loss" || key == "target";  // of prune(), of prune_onnx()
    if (!is_argument) types += "    " + key + ": " + annotation(key, property) + "\n";
    rows += "    \"" + key + "\": Setting(\n        " +
            (usual.is_null() ? "None" : python_text(usual)) + ",\n        " +
            python_text(property["description"]) + ",\n    ),\n";
  }
  test::expect_made("python/parsimony/settings.py", text + types + "\n\n" + rows + "}\n");
}

}  // namespace
}  // namespace parsimony
