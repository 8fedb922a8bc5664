#include "parsimony/configs/config.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {
namespace {

using Names = std::vector<std::string>;

std::string config_error(std::string_view text) {
  try {
    parse_config(text, "c.json");
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const UnsupportedError& error) {
    return std::string("unsupported: ") + error.what();
  }
  return "no error";
}

TEST(ParseConfig, ReadsAnArray) {
  const ConfigList config = parse_config(R"([
      {"op_types": ["Conv2d"], "sparse_ratio": 0.5, "criterion": "l2", "scope": "global",
       "budget": "macs", "round_to": 8, "min_sparse_ratio": 0.1, "max_sparse_ratio": 0.9},
      {"op_names": ["fc"], "op_names_re": ["a.*"], "exclude": true}])",
                                         "c.json");
  ASSERT_EQ(config.entries.size(), 2U);
  const ConfigEntry& first = config.entries[0];
  EXPECT_EQ(first.op_types, (Names{"Conv2d"}));
  EXPECT_EQ(first.request.ratio, 0.5);
  EXPECT_EQ(first.request.criterion, "l2");
  EXPECT_EQ(first.request.scope, Scope::kGlobal);
  EXPECT_EQ(first.request.budget, Budget::kMacs);
  EXPECT_EQ(first.request.round_to, 8);
  EXPECT_EQ(first.request.min_ratio, 0.1);
  EXPECT_EQ(first.request.max_ratio, 0.9);
  EXPECT_EQ(first.source.place, "c.json: config_list[0]");
  EXPECT_TRUE(config.entries[1].exclude);
  EXPECT_EQ(config.entries[1].op_names, (Names{"fc"}));
  EXPECT_EQ(config.entries[1].op_names_re, (Names{"a.*"}));
  EXPECT_FALSE(config.granularity.has_value());
}

TEST(ParseConfig, ReadsAnObjectWithDefaults) {
  const ConfigList config = parse_config(R"({
      "$schema": "schema.json", "granularity": "head", "criterion": "l2", "sparse_ratio": 0.3,
      "round_to": 4, "config_list": [{}, {"criterion": "random", "sparse_ratio": 0.6},
                                     {"op_names": ["fc"], "exclude": true}]})",
                                         "c.json");
  EXPECT_EQ(config.granularity, Granularity::kHead);
  EXPECT_EQ(config.entries.at(0).request.criterion, "l2");
  EXPECT_EQ(config.entries[0].request.ratio, 0.3);
  EXPECT_EQ(config.entries[1].request.criterion, "random");
  EXPECT_EQ(config.entries[1].request.ratio, 0.6);
  EXPECT_EQ(config.entries[1].request.round_to, 4);
}

TEST(ParseConfig, ReadsOlderSpellings) {
  const ConfigList config = parse_config(
      R"({"scope": "global", "config_list": [{"sparsity": 0.2}, {"sparsity_per_layer": 0.4}]})",
      "c.json");
  EXPECT_EQ(config.entries.at(0).request.ratio, 0.2);
  EXPECT_EQ(config.entries[0].request.scope, Scope::kGlobal);
  EXPECT_EQ(config.entries.at(1).request.ratio, 0.4);
  EXPECT_EQ(config.entries[1].request.scope, Scope::kLocal);
}

TEST(ParseConfig, PlacesSyntaxErrors) {
  EXPECT_EQ(config_error("[\n  {\"sparse_ratio\": 0.5},,\n]"),
            "c.json:2:25: not JSON: syntax error while parsing value - unexpected ','; expected "
            "'[', '{', or a literal");
  EXPECT_EQ(config_error("").substr(0, 22), "c.json:1:1: not JSON: ");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 0.5, "sparse_ratio": 0.6}])"),
            "c.json: config_list[0]: key \"sparse_ratio\" occurs twice in one object");
  EXPECT_EQ(config_error(std::string(100000, '[')), "c.json: is nested too deeply");
}

TEST(ParseConfig, NamesUnknownKeys) {
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 0.5, "op_type": ["Conv"]}])"),
            "c.json: config_list[0]: unknown key \"op_type\". Did you mean \"op_types\"?");
  EXPECT_EQ(config_error(R"({"config_lists": []})"),
            "c.json: unknown key \"config_lists\". Did you mean \"config_list\"?");
  EXPECT_EQ(config_error(R"([{"zzz": 1}])"), "c.json: config_list[0]: unknown key \"zzz\".");
}

TEST(ParseConfig, NamesWrongTypes) {
  EXPECT_EQ(config_error("3"), "c.json: found 3, expected a list of entries, or an object");
  EXPECT_EQ(config_error(R"([{"op_types": "Conv", "sparse_ratio": 0.5}])"),
            "c.json: config_list[0].op_types: found \"Conv\", expected a list of strings");
  EXPECT_EQ(config_error(R"([{"op_types": ["Conv", 2], "sparse_ratio": 0.5}])"),
            "c.json: config_list[0].op_types[1]: found 2, expected a string");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": "half"}])"),
            "c.json: config_list[0].sparse_ratio: found \"half\", expected a number in [0, 1)");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 0.5, "round_to": 2.5}])"),
            "c.json: config_list[0].round_to: found 2.5, expected an integer from 1 to 65536");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 0.5, "round_to": "x87"}])"),
            "c.json: config_list[0].round_to: found \"x87\", expected \"generic\", \"x86-avx2\", "
            "\"x86-avx512\", \"arm-neon\" or \"cuda-tensorcore\"");
  EXPECT_EQ(config_error(R"([{"exclude": 1}])"),
            "c.json: config_list[0].exclude: found 1, expected true or false");
  EXPECT_EQ(config_error("[3]"), "c.json: config_list[0]: found 3, expected an object");
  EXPECT_EQ(config_error(R"({"config_list": {}})"),
            "c.json: config_list: found an object, expected a list of objects");
}

TEST(ParseConfig, NamesValuesOutOfRange) {
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 1.0}])"),
            "c.json: config_list[0].sparse_ratio: found 1.0, expected a number in [0, 1)");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": -0.1}])"),
            "c.json: config_list[0].sparse_ratio: found -0.1, expected a number in [0, 1)");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 0.5, "max_sparse_ratio": 1.5}])"),
            "c.json: config_list[0].max_sparse_ratio: found 1.5, expected a number in [0, 1]");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 0.5, "round_to": 0}])"),
            "c.json: config_list[0].round_to: found 0, expected an integer from 1 to 65536");
  EXPECT_EQ(
      config_error(R"([{"sparse_ratio": 0.5, "round_to": 18446744073709551615}])"),
      "c.json: config_list[0].round_to: found 18446744073709551615, expected an integer from 1 "
      "to 65536");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 0.5, "scope": "locale"}])"),
            "c.json: config_list[0].scope: found \"locale\", expected \"local\", \"global\", "
            "\"isomorphic\" or \"outputs\"");
  EXPECT_EQ(config_error(R"({"budget": "flops", "config_list": [{"sparse_ratio": 0.5}]})"),
            "c.json: budget: found \"flops\", expected \"channels\", \"params\", \"macs\", "
            "\"latency_ms\" or \"weights\"");
  EXPECT_EQ(config_error(R"({"granularity": "filter", "config_list": [{"sparse_ratio": 0.5}]})"),
            "c.json: granularity: found \"filter\", expected \"default\", \"out_channel\", "
            "\"per_channel\", \"in_channel\", \"element\", \"channel\", \"head\", \"head_dim\", "
            "\"group\" or \"expert\"");
  EXPECT_EQ(config_error(R"([{"sparse_ratio": 0.5, "criterion": "l3"}])"),
            "c.json: config_list[0].criterion: unknown criterion \"l3\"; this version has " +
                each_of(criterion_names()));
}

TEST(ParseConfig, APatternNeedsNoRatio) {
  const ConfigList config = parse_config(
      R"([{"criterion": "2:4"}, {"criterion": "block:4x1", "sparse_ratio": 0.3}])", "c.json");
  EXPECT_EQ(config.entries[0].request.criterion, "2:4");
  EXPECT_EQ(config.entries[0].request.ratio, 0.5);
  EXPECT_EQ(config.entries[1].request.criterion, "block:4x1");
  EXPECT_EQ(config_error(R"([{"criterion": "block:4x1"}])"),
            "c.json: config_list[0]: no \"sparse_ratio\"; give one, or \"sparse_threshold\", an "
            "amount in \"budget\", or \"exclude\": true");
  EXPECT_EQ(config_error(R"([{"criterion": "2:4", "max_sparse_ratio": 0.4}])"),
            "c.json: config_list[0]: criterion \"2:4\" removes a share of 0.5, which "
            "\"min_sparse_ratio\" and \"max_sparse_ratio\" do not allow");
  EXPECT_EQ(config_error(R"([{"criterion": "wanda_elements", "sparse_threshold": 0.4}])"),
            "c.json: config_list[0]: criterion \"wanda_elements\" zeroes a share of the elements: "
            "give \"sparse_ratio\", no threshold");
}

TEST(ParseConfig, NamesWhatIsMissingOrContradicts) {
  EXPECT_EQ(config_error("[]"), "c.json: config_list: the list is empty; nothing would be pruned");
  EXPECT_EQ(config_error("{}"), "c.json: no \"config_list\"");
  EXPECT_EQ(
      config_error(R"([{"op_types": [], "sparse_ratio": 0.5}])"),
      "c.json: config_list[0].op_types: the list is empty; omit the key to select every layer");
  EXPECT_EQ(
      config_error(R"([{"op_types": ["Conv"]}])"),
      "c.json: config_list[0]: no \"sparse_ratio\"; give one, or \"sparse_threshold\", an amount "
      "in \"budget\", or \"exclude\": true");
  EXPECT_EQ(
      config_error(R"([{"sparse_ratio": 0.5, "sparsity": 0.5}])"),
      "c.json: config_list[0]: \"sparse_ratio\" and \"sparsity\" are two names for one thing; "
      "give one of them");
  EXPECT_EQ(config_error(R"([{"sparsity_per_layer": 0.5, "scope": "global"}])"),
            "c.json: config_list[0]: \"sparsity_per_layer\" and \"scope\": \"global\" contradict "
            "each other");
  EXPECT_EQ(config_error(R"([{"op_names": ["a"], "exclude": true, "sparse_ratio": 0.5}])"),
            "c.json: config_list[0]: \"exclude\": true and \"sparse_ratio\" contradict each other");
  EXPECT_EQ(config_error(R"([{"exclude": true}])"),
            "c.json: config_list[0]: \"exclude\": true without op_types, op_names, op_names_re or "
            "op_partial_names excludes all");
  EXPECT_EQ(
      config_error(R"([{"sparse_ratio": 0.5, "min_sparse_ratio": 0.6, "max_sparse_ratio": 0.5}])"),
      "c.json: config_list[0]: \"min_sparse_ratio\" is above \"max_sparse_ratio\"");
  EXPECT_EQ(
      config_error(
          R"({"round_to": 8, "config_list": [{"sparse_ratio": 0.5, "criterion": "level"}]})"),
      "c.json: config_list[0]: criterion \"level\" zeroes single elements, but \"round_to\" is "
      "about channels");
}

TEST(ParseConfig, ReadsCriteriaAndScopesToCompare) {
  const ConfigList config = parse_config(
      R"([{"op_types": ["Conv"], "sparse_ratio": 0.5, "criterion": "l1, obs", "scope": "local,global"},
          {"op_types": ["Gemm"], "sparse_ratio": 0.5, "criterion": "l2"},
          {"op_names": ["a"], "exclude": true}])",
      "c.json");
  EXPECT_EQ(config.entries[0].request.scopes, (std::vector{Scope::kLocal, Scope::kGlobal}));
  EXPECT_TRUE(has_choice(config));
  EXPECT_FALSE(has_choice(from_shorthand({.criterion = "l1,l1", .ratio = 0.5})));
  const ConfigList group = parse_config(
      R"({"scope": "local,global", "config_list": [{"sparse_ratio": 0.5, "global_group_id": 1}]})",
      "c.json");
  EXPECT_EQ(group.entries[0].request.scope, Scope::kGlobal);
  EXPECT_FALSE(has_choice(group));
  EXPECT_EQ(parse_config(to_json(config), "again.json").entries[0].request,
            config.entries[0].request);
}

TEST(ReadConfig, ReadsEverySample) {
  const std::filesystem::path samples = std::string(PARSIMONY_SOURCE_DIR) + "/configs/samples";
  int read = 0;
  for (const auto& file : std::filesystem::directory_iterator(samples)) {
    EXPECT_FALSE(read_config(file.path().string()).entries.empty()) << file.path();
    ++read;
  }
  EXPECT_GE(read, 4);
  EXPECT_THROW(read_config("/no/such/config.json"), IoError);
}

}  // namespace
}  // namespace parsimony
