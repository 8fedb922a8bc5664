// Keys beyond the plain ratio: what they read, and what they say to what cannot be done.
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/configs/config.h"

namespace parsimony {
namespace {

Request request_of(const std::string& keys) {
  return parse_config("[{" + keys + "}]", "c.json").entries.at(0).request;
}

std::string keys_error(const std::string& text) {
  try {
    parse_config(text, "c.json");
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const UnsupportedError& error) {
    return std::string("unsupported: ") + error.what();
  }
  return "no error";
}

std::string error_in(const std::string& keys) { return keys_error("[{" + keys + "}]"); }

TEST(Keys, OlderSpellings) {
  const Request total = request_of(R"("total_sparsity": 0.8, "max_sparsity_per_layer": 0.9)");
  EXPECT_EQ(total.ratio, 0.8);
  EXPECT_EQ(total.scope, Scope::kGlobal);
  EXPECT_EQ(total.budget, Budget::kWeights);
  EXPECT_EQ(total.max_ratio, 0.9);
  EXPECT_EQ(request_of(R"("total_sparsity": 0.8, "budget": "channels")").budget, Budget::kChannels);
  EXPECT_EQ(error_in(R"("total_sparsity": 0.5, "sparsity": 0.5)"),
            "c.json: config_list[0]: \"sparsity\" and \"total_sparsity\" are two names for one "
            "thing; give one of them");
  EXPECT_EQ(error_in(R"("total_sparsity": 0.5, "scope": "local")"),
            "c.json: config_list[0]: \"total_sparsity\" and \"scope\": \"local\" contradict each "
            "other");
  EXPECT_EQ(
      error_in(R"("sparsity": 0.5, "max_sparse_ratio": 0.5, "max_sparsity_per_layer": 0.5)"),
      "c.json: config_list[0]: \"max_sparse_ratio\" and \"max_sparsity_per_layer\" are two names "
      "for one thing; give one of them");
}

TEST(Keys, Amounts) {
  const Request macs = request_of(R"("budget": {"macs": 2e9})");
  EXPECT_EQ(macs.budget, Budget::kMacs);
  EXPECT_EQ(macs.amount, 2e9);
  EXPECT_EQ(request_of(R"("budget": {"params": "1.5M"})").amount, 1.5e6);
  const Request latency = request_of(R"("budget": {"latency_ms": 0.5})");
  EXPECT_EQ(latency.budget, Budget::kLatency);
  EXPECT_EQ(latency.amount, 0.5);
  const Request share = request_of(R"("budget": {"macs": "40%"})");
  EXPECT_FALSE(share.amount.has_value());
  EXPECT_DOUBLE_EQ(share.ratio, 0.6);
  EXPECT_EQ(share.budget, Budget::kMacs);
  EXPECT_EQ(error_in(R"("budget": {"macs": 0})"),
            "c.json: config_list[0].budget.macs: found 0, expected a number in (0, ∞)");
  const Request several = request_of(R"("budget": {"macs": "40%", "peak_ram": "256K"})");
  EXPECT_EQ(several.budget, Budget::kMacs);
  EXPECT_EQ(several.also, (std::vector<Limit>{{Budget::kPeakRam, 256.0 * 1024, 0}}));
  EXPECT_EQ(error_in(R"("budget": {})"),
            "c.json: config_list[0].budget: found no amount, expected at least one");
  EXPECT_EQ(error_in(R"("budget": {"flops": 1})"),
            "c.json: config_list[0].budget: found \"flops\", expected \"params\", \"macs\", "
            "\"latency_ms\", \"weights\", \"file\" or \"peak_ram\"");
  EXPECT_EQ(
      error_in(R"("budget": {"params": "1T"})"),
      "c.json: config_list[0].budget.params: found \"1T\", expected a number above 0, as 2e9, "
      "or a share of the whole, as \"50%\"");
  EXPECT_EQ(error_in(R"("budget": {"params": 1e5}, "sparse_ratio": 0.5)"),
            "c.json: config_list[0]: \"sparse_ratio\", \"sparse_threshold\", an amount in "
            "\"budget\" and \"align\" each say how much to prune; give one of them");
}

TEST(Keys, TheNearestObjectSaysHowMuch) {
  const ConfigList config = parse_config(R"({"budget": {"macs": 5}, "config_list": [
      {"op_names": ["a"], "sparse_ratio": 0.5}, {"op_names": ["b"], "sparse_threshold": 2},
      {"op_names": ["c"]}]})",
                                         "c.json");
  EXPECT_FALSE(config.entries.at(0).request.amount.has_value());
  EXPECT_EQ(config.entries[0].request.budget, Budget::kChannels);
  EXPECT_EQ(config.entries[0].request.ratio, 0.5);
  EXPECT_EQ(config.entries[1].request.threshold, 2);
  EXPECT_EQ(config.entries[2].request.amount, 5);
}

TEST(Keys, Thresholds) {
  EXPECT_EQ(request_of(R"("sparse_threshold": 0.1)").threshold, 0.1);
  EXPECT_EQ(error_in(R"("sparse_threshold": "low")"),
            "c.json: config_list[0].sparse_threshold: found \"low\", expected a number");
  EXPECT_EQ(error_in(R"("sparse_threshold": 0.1, "scope": "global")"),
            "c.json: config_list[0]: \"sparse_threshold\" holds for every score by itself: there "
            "is no budget to share");
}

TEST(Keys, Bounds) {
  const Request request = request_of(
      R"("sparse_ratio": 0.5, "keep_at_least": 16, "internal_metric_block": 4, "round_to": 8)");
  EXPECT_EQ(request.keep_at_least, 16);
  EXPECT_EQ(request.metric_blocks, 4);
  EXPECT_EQ(request.round_to, 8);
  EXPECT_EQ(
      error_in(R"("sparse_ratio": 0.5, "keep_at_least": 0)"),
      "c.json: config_list[0].keep_at_least: found 0, expected an integer from 1 to 2147483647");
}

TEST(Keys, GlobalGroups) {
  const Request request = request_of(R"("sparse_ratio": 0.5, "global_group_id": "a")");
  EXPECT_EQ(request.global_group, "\"a\"");
  EXPECT_EQ(request.scope, Scope::kGlobal);
  EXPECT_EQ(request.budget, Budget::kWeights);
  EXPECT_EQ(request_of(R"("sparse_ratio": 0.5, "global_group_id": 3)").global_group, "3");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "global_group_id": 3.5)"),
            "c.json: config_list[0].global_group_id: found 3.5, expected an integer or a string");
  EXPECT_EQ(keys_error(R"([{"sparse_ratio": 0.5, "global_group_id": 3},
                         {"sparse_ratio": 0.6, "global_group_id": 3}])"),
            "c.json: config_list[1]: has other settings than c.json: config_list[0], but both have "
            "global_group_id 3: give them the same ratio or amount, scope and budget");
  EXPECT_EQ(
      keys_error(R"([{"budget": {"macs": 5}}, {"budget": {"macs": 6}}])"),
      "c.json: config_list[1]: has other settings than c.json: config_list[0], but both have an "
      "amount of the network's MACs: give them the same ratio or amount, scope and budget");
}

TEST(Keys, DependencyGroupsAndAlign) {
  EXPECT_EQ(request_of(R"("sparse_ratio": 0.5, "dependency_group_id": 1)").dependency_group, "1");
  EXPECT_EQ(request_of(R"("sparse_ratio": 0.5, "equal_width_id": 1)").equal_width, "1");
  const ConfigList config = parse_config(
      R"([{"op_names": ["b"], "align": {"module_name": "a", "target_name": "weight",
           "dims": [0]}}])",
      "c.json");
  EXPECT_EQ(config.entries.at(0).aligned_with, "a");
  EXPECT_EQ(error_in(R"("align": {"target_name": "weight", "dims": [0]})"),
            "c.json: config_list[0].align: no \"module_name\": a weight can follow another "
            "layer's only");
  EXPECT_EQ(error_in(R"("align": {"module_name": "a", "dims": [1]})"),
            "unsupported: c.json: config_list[0].align.dims: [1]: only [0], the output channels, "
            "are removed together");
  EXPECT_EQ(error_in(R"("align": {"module": "a"})"),
            "c.json: config_list[0].align: unknown key \"module\". Did you mean \"module_name\"?");
}

TEST(Keys, Granularity) {
  EXPECT_FALSE(request_of(R"("sparse_ratio": 0.5, "granularity": "default")").in_channels);
  EXPECT_TRUE(request_of(R"("sparse_ratio": 0.5, "granularity": "in_channel")").in_channels);
  EXPECT_TRUE(request_of(R"("sparse_ratio": 0.5, "granularity": [-1, 1, -1, -1])").in_channels);
  EXPECT_FALSE(request_of(R"("sparse_ratio": 0.5, "granularity": [1, -1])").in_channels);
  EXPECT_EQ(request_of(R"("sparse_ratio": 0.5, "granularity": "head")").granularity,
            Granularity::kHead);
  EXPECT_FALSE(
      request_of(R"("sparse_ratio": 0.5, "granularity": "out_channel")").granularity.has_value());
  EXPECT_EQ(request_of(R"("sparse_ratio": 0.5, "granularity": "element")").criterion, "level");
  EXPECT_EQ(request_of(R"("sparse_ratio": 0.5, "granularity": [1, 1])").criterion, "level");
  EXPECT_EQ(request_of(R"("sparse_ratio": 0.5, "granularity": [4, 1])").criterion, "block:4x1");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "granularity": "element", "criterion": "random")"),
            "c.json: config_list[0]: criterion \"random\" scores whole channels, but "
            "\"granularity\" asks for elements");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "granularity": "head", "criterion": "level")"),
            "c.json: config_list[0]: criterion \"level\" zeroes single elements, but "
            "\"granularity\" is about channels");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "granularity": [2, 2, 2])"),
            "unsupported: c.json: config_list[0].granularity: blocks are [outputs, inputs] of a "
            "weight matrix, both above 0; or [1, -1, …] for output and [-1, 1, …] for input "
            "channels");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "granularity": [-1, -1])"),
            "c.json: config_list[0].granularity: a block of the whole weight leaves nothing to "
            "choose");
}

TEST(Keys, TheNetworksGranularityIsNoEntrys) {
  const ConfigList config = parse_config(
      R"({"granularity": "head", "config_list": [{"sparse_ratio": 0.5, "criterion": "level"}]})",
      "c.json");
  EXPECT_EQ(config.granularity, Granularity::kHead);
  EXPECT_FALSE(config.entries.at(0).request.granularity.has_value());
}

TEST(Keys, TargetsOfNni) {
  const Request request = request_of(R"("op_types": ["Linear"], "sparse_ratio": 0.5,
      "target_names": ["weight", "bias"], "target_settings": {
        "weight": {"sparse_ratio": 0.8, "max_sparse_ratio": null, "global_group_id": null,
                   "granularity": "default", "apply_method": "mul", "criterion": "l2"},
        "bias": {"align": {"module_name": null, "target_name": "weight", "dims": [0]},
                 "apply_method": "mul"}})");
  EXPECT_EQ(request.ratio, 0.8);
  EXPECT_EQ(request.max_ratio, 1);
  EXPECT_EQ(request.criterion, "l2");
  EXPECT_TRUE(request.global_group.empty());
}

TEST(Keys, TargetsThatAreRefused) {
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "target_names": ["_input_0"])"),
            "unsupported: c.json: config_list[0].target_names[0]: \"_input_0\" is data, and a mask "
            "on it leaves every weight as large as it was; name \"weight\" of the layer that makes "
            "it, or, for an input, give \"granularity\": \"in_channel\"");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "target_names": ["bias"])"),
            "unsupported: c.json: config_list[0].target_names: a bias is not pruned by itself; "
            "name \"weight\" as well");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "target_names": ["p1"])"),
            "c.json: config_list[0].target_names[0]: found \"p1\", expected \"bias\" or "
            "\"weight\"");
  EXPECT_EQ(error_in(R"("target_settings": {"bias": {"sparse_ratio": 0.5}})"),
            "unsupported: c.json: config_list[0].target_settings.bias.sparse_ratio: a bias is not "
            "pruned by itself: it loses what its weight loses");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "target_names": ["weight"],
                        "target_settings": {"bias": {}})"),
            "c.json: config_list[0].target_settings.bias: \"target_names\" does not name "
            "\"bias\"");
  EXPECT_EQ(error_in(R"("target_settings": {"weight": {"sparse_rato": 0.5}})"),
            "c.json: config_list[0].target_settings.weight: unknown key \"sparse_rato\". Did you "
            "mean \"sparse_ratio\"?");
  EXPECT_EQ(
      error_in(R"("target_settings": {"weight": {"sparse_ratio": 2}})"),
      "c.json: config_list[0].target_settings.weight.sparse_ratio: found 2, expected a number "
      "in [0, 1)");
}

TEST(Keys, ApplyMethodsThatAreRefused) {
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "apply_method": "mul")"), "no error");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "apply_method": "movement_add")"),
            "unsupported: c.json: config_list[0].apply_method: \"movement_add\" adds -1000 where "
            "the mask is 0, which is for the scores before a softmax; a weight is multiplied by "
            "its mask: \"mul\"");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "apply_method": "bypass")"),
            "unsupported: c.json: config_list[0].apply_method: \"bypass\" prunes nothing; leave "
            "the layer out, or exclude it");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "apply_method": "div")"),
            "c.json: config_list[0].apply_method: found \"div\", expected \"mul\"");
}

TEST(Keys, WhatOthersCarryOut) {
  const ConfigList config = parse_config(
      R"({"schedule": {"schedule": "agp", "steps": 5, "epochs_between": 2},
          "calibration": {"data": "cifar10:DIR", "samples": 512},
          "recover": ["bias", "least-squares"], "config_list": [{"sparse_ratio": 0.5}]})",
      "c.json");
  EXPECT_EQ(config.schedule, (ScheduleSetting{PruningSchedule::kAgp, 1, 5, 2}));
  EXPECT_EQ(config.calibration, (CalibrationSetting{"cifar10:DIR", 512}));
  EXPECT_EQ(config.recover, (std::vector<std::string>{"bias", "least-squares"}));
  const auto error = [](const std::string& keys) {
    return keys_error("{" + keys + R"(, "config_list": [{"sparse_ratio": 0.5}]})");
  };
  EXPECT_EQ(error(R"("recover": "bn")"), "no error");
  EXPECT_EQ(error(R"("recover": ["bn", "lstsq"])"),
            "c.json: recover[1]: found \"lstsq\", expected \"bias\", \"bn\", \"least-squares\", "
            "\"outputs\", \"outputs:blocks\" or \"finetune\"");
  EXPECT_EQ(error(R"("recover": ["bn", "bn"])"), "c.json: recover[1]: \"bn\" occurs twice");
  EXPECT_EQ(error(R"("calibration": {"samples": 3})"), "c.json: calibration: no \"data\"");
  EXPECT_EQ(error(R"("schedule": {"steps": 3})"),
            "c.json: schedule: \"steps\" needs \"schedule\": \"linear\", \"agp\" or \"lottery\"");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "recover": "bn")"),
            "c.json: config_list[0]: unknown key \"recover\".");
}

TEST(Keys, ElementsHaveNoChannels) {
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "criterion": "level", "max_sparse_ratio": 0.6)"),
            "no error");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "criterion": "level", "keep_at_least": 2)"),
            "c.json: config_list[0]: criterion \"level\" zeroes single elements, but "
            "\"keep_at_least\" is about channels");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "criterion": "level", "scope": "isomorphic")"),
            "c.json: config_list[0]: criterion \"level\" zeroes single elements, but "
            "\"isomorphic\" is about channels");
  EXPECT_EQ(error_in(R"("sparse_ratio": 0.5, "criterion": "level", "scope": "outputs")"),
            "c.json: config_list[0]: criterion \"level\" zeroes single elements, but "
            "\"outputs\" is about channels");
}

}  // namespace
}  // namespace parsimony
