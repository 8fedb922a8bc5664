#include "parsimony/configs/recipe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {
namespace {

std::string recipe_error(const std::string& json) {
  try {
    parse_recipe(json, "r.json");
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const UnsupportedError& error) {
    return std::string("unsupported: ") + error.what();
  }
  return "no error";
}

std::string train_error(const std::string& keys) {
  return recipe_error(R"({"train": {)" + keys + "}}");
}

std::string prune_error(const std::string& keys) {
  return recipe_error(R"({"prune": {"config_list": [{"sparse_ratio": 0.5}], )" + keys + "}}");
}

std::string sweep_error(const std::string& keys) {
  return recipe_error(R"({"prune": {"config_list": [{"sparse_ratio": 0.5}]}, "sweep": {)" + keys +
                      "}}");
}

Recipe pruning(const std::string& keys) {
  return parse_recipe(R"({"prune": {"config_list": [{"sparse_ratio": 0.5}])" + keys + "}}", "r");
}

TEST(Recipe, ReadsEveryKey) {
  const Recipe recipe = parse_recipe(R"({
    "$schema": "recipe_schema.json", "model": "cnn", "data": "shapes",
    "train": {"epochs": 7, "batch": 32, "optimizer": "sgd", "lr": 0.25, "momentum": 0.5,
              "weight_decay": 0.125, "schedule": "step", "step_epochs": 3, "step_factor": 0.5,
              "label_smoothing": 0.0625, "flip": true, "crop": 4, "cutout": 8, "normalise": true,
              "evaluate_every": 1, "early_stop": 5, "batch_norm": true, "distill": 0.75, "temperature": 2,
              "precision": "bf16", "memory_format": "channels_last", "seed": 11},
    "prune": {"warmup_epochs": 2, "schedule": "agp", "steps": 4, "epochs_between": 3,
              "criterion": "l2", "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]},
    "sweep": {"sparsity": [0, 0.25], "criterion": ["l1", "random"], "seed": [3, 4]}})",
                                     "r.json");
  EXPECT_EQ(recipe.model, "cnn");
  EXPECT_EQ(recipe.data, "shapes");
  const TrainSettings expected{.epochs = 7,
                               .batch = 32,
                               .optimizer = OptimizerKind::kSgd,
                               .lr = 0.25,
                               .momentum = 0.5,
                               .weight_decay = 0.125,
                               .schedule = RateSchedule::kStep,
                               .step_epochs = 3,
                               .step_factor = 0.5,
                               .label_smoothing = 0.0625,
                               .flip = true,
                               .crop = 4,
                               .cutout = 8,
                               .normalise = true,
                               .evaluate_every = 1,
                               .early_stop = 5,
                               .batch_norm = true,
                               .distill = 0.75,
                               .temperature = 2,
                               .precision = Precision::kBFloat16,
                               .memory_format = MemoryFormat::kChannelsLast,
                               .seed = 11};
  EXPECT_EQ(recipe.train, expected);
  ASSERT_TRUE(recipe.prune.has_value());
  EXPECT_EQ(recipe.prune->warmup_epochs, 2);
  EXPECT_EQ(recipe.prune->schedule, PruningSchedule::kAgp);
  EXPECT_EQ(recipe.prune->steps, 4);
  EXPECT_EQ(recipe.prune->epochs_between, 3);
  ASSERT_EQ(recipe.prune->config.entries.size(), 1U);
  EXPECT_EQ(recipe.prune->config.entries[0].request.criterion, "l2");
  EXPECT_EQ(recipe.prune->config.entries[0].request.ratio, 0.5);
  EXPECT_EQ(recipe.prune->config.entries[0].source.place, "r.json: prune.config_list[0]");
  ASSERT_TRUE(recipe.sweep.has_value());
  EXPECT_EQ(recipe.sweep->sparsity, (std::vector<double>{0, 0.25}));
  EXPECT_EQ(recipe.sweep->criterion, (std::vector<std::string>{"l1", "random"}));
  EXPECT_EQ(recipe.sweep->seed, (std::vector<uint64_t>{3, 4}));
}

TEST(Recipe, EveryWordMeansSomethingElse) {
  const auto train = [](const std::string& key, const std::string& word) {
    return parse_recipe(R"({"train": {")" + key + R"(": ")" + word + R"("}})", "r").train;
  };
  EXPECT_EQ(train("optimizer", "adam").optimizer, OptimizerKind::kAdam);
  EXPECT_EQ(train("optimizer", "adamw").optimizer, OptimizerKind::kAdamW);
  EXPECT_EQ(train("optimizer", "muon").optimizer, OptimizerKind::kMuon);
  EXPECT_EQ(train("schedule", "constant").schedule, RateSchedule::kConstant);
  EXPECT_EQ(train("schedule", "cosine").schedule, RateSchedule::kCosine);
  EXPECT_EQ(train("schedule", "one_cycle").schedule, RateSchedule::kOneCycle);
  EXPECT_EQ(train("precision", "fp32").precision, Precision::kFloat32);
  EXPECT_EQ(train("precision", "fp16").precision, Precision::kFloat16);
  EXPECT_EQ(train("memory_format", "auto").memory_format, MemoryFormat::kAuto);
  EXPECT_EQ(train("memory_format", "contiguous").memory_format, MemoryFormat::kContiguous);
  EXPECT_EQ(pruning(R"(, "schedule": "one_shot")").prune->schedule, PruningSchedule::kOneShot);
  EXPECT_EQ(pruning(R"(, "schedule": "linear")").prune->schedule, PruningSchedule::kLinear);
}

TEST(Recipe, WhatIsNotSaidHasItsDefault) {
  const Recipe recipe = parse_recipe("{}", "r.json");
  EXPECT_EQ(recipe.model, "");
  EXPECT_EQ(recipe.data, "");
  EXPECT_EQ(recipe.train, TrainSettings());
  EXPECT_FALSE(recipe.prune.has_value());
  EXPECT_FALSE(recipe.sweep.has_value());
  const Recipe pruned = pruning("");
  EXPECT_EQ(pruned.prune->warmup_epochs, 1);
  EXPECT_EQ(pruned.prune->schedule, PruningSchedule::kOneShot);
  EXPECT_EQ(pruned.prune->steps, 1);
  EXPECT_EQ(pruned.prune->epochs_between, 1);
}

TEST(Recipe, NamesUnknownKeysWithCandidates) {
  EXPECT_EQ(recipe_error(R"({"trian": {}})"),
            "r.json: unknown key \"trian\". Did you mean \"train\"?");
  EXPECT_EQ(train_error(R"("epoch": 3)"),
            "r.json: train: unknown key \"epoch\". Did you mean \"epochs\"?");
  EXPECT_EQ(prune_error(R"("warmup_epoch": 3)"),
            "r.json: prune: unknown key \"warmup_epoch\". Did you mean \"warmup_epochs\"?");
  EXPECT_EQ(prune_error(R"("criterium": "l1")"),
            "r.json: prune: unknown key \"criterium\". Did you mean \"criterion\"?");
  EXPECT_EQ(sweep_error(R"("sparsty": [0.5])"),
            "r.json: sweep: unknown key \"sparsty\". Did you mean \"sparsity\"?");
  EXPECT_EQ(prune_error(R"("align": 8)"), "r.json: prune: unknown key \"align\".");
}

TEST(Recipe, NamesWrongTypes) {
  EXPECT_EQ(recipe_error("[]"), "r.json: found a list, expected an object");
  EXPECT_EQ(recipe_error(R"({"model": 3})"), "r.json: model: found 3, expected a string");
  EXPECT_EQ(recipe_error(R"({"train": 3})"), "r.json: train: found 3, expected an object");
  EXPECT_EQ(recipe_error(R"({"prune": []})"), "r.json: prune: found a list, expected an object");
  EXPECT_EQ(train_error(R"("epochs": 1.5)"),
            "r.json: train.epochs: found 1.5, expected an integer from 0 to 2147483647");
  EXPECT_EQ(train_error(R"("lr": "high")"),
            "r.json: train.lr: found \"high\", expected a number in (0, ∞)");
  EXPECT_EQ(train_error(R"("flip": 1)"), "r.json: train.flip: found 1, expected true or false");
  EXPECT_EQ(train_error(R"("optimizer": 1)"),
            "r.json: train.optimizer: found 1, expected \"sgd\", \"adam\", \"adamw\" or \"muon\"");
  EXPECT_EQ(sweep_error(R"("sparsity": 0.5)"),
            "r.json: sweep.sparsity: found 0.5, expected a list");
  EXPECT_EQ(sweep_error(R"("sparsity": [0.5, "x"])"),
            "r.json: sweep.sparsity[1]: found \"x\", expected a number in [0, 1)");
  EXPECT_EQ(sweep_error(R"("sparsity": [0.5], "criterion": [1])"),
            "r.json: sweep.criterion[0]: found 1, expected a string");
}

TEST(Recipe, NamesValuesOutOfRange) {
  EXPECT_EQ(train_error(R"("epochs": -1)"),
            "r.json: train.epochs: found -1, expected an integer from 0 to 2147483647");
  EXPECT_EQ(train_error(R"("batch": 0)"),
            "r.json: train.batch: found 0, expected an integer from 1 to 2147483647");
  EXPECT_EQ(train_error(R"("lr": 0)"), "r.json: train.lr: found 0, expected a number in (0, ∞)");
  EXPECT_EQ(train_error(R"("weight_decay": -1)"),
            "r.json: train.weight_decay: found -1, expected a number in [0, ∞)");
  EXPECT_EQ(train_error(R"("distill": 1.5)"),
            "r.json: train.distill: found 1.5, expected a number in [0, 1]");
  EXPECT_EQ(train_error(R"("seed": -1)"),
            "r.json: train.seed: found -1, expected an integer from 0 to 2147483647");
  EXPECT_EQ(train_error(R"("mean": [0.5, "1"])"),
            "r.json: train.mean[1]: found \"1\", expected a number");
  EXPECT_EQ(train_error(R"("std": [0])"),
            "r.json: train.std[0]: found 0, expected a number in (0, ∞)");
  EXPECT_EQ(train_error(R"("std": 1)"), "r.json: train.std: found 1, expected a list of numbers");
  EXPECT_EQ(
      train_error(R"("optimizer": "lion")"),
      "r.json: train.optimizer: found \"lion\", expected \"sgd\", \"adam\", \"adamw\" or \"muon\"");
  EXPECT_EQ(prune_error(R"("schedule": "cubic")"),
            "r.json: prune.schedule: found \"cubic\", expected \"one_shot\", \"linear\", \"agp\", "
            "\"lottery\" or \"annealing\"");
  EXPECT_EQ(sweep_error(R"("sparsity": [0.5, 1])"),
            "r.json: sweep.sparsity[1]: found 1, expected a number in [0, 1)");
  EXPECT_EQ(sweep_error(R"("sparsity": [0.5], "criterion": ["l3"])"),
            "r.json: sweep.criterion[0]: unknown criterion \"l3\"; this version has " +
                each_of(criterion_names()));
}

TEST(Recipe, NamesWhatIsMissingOrContradicts) {
  EXPECT_EQ(train_error(R"("early_stop": 2, "evaluate_every": 0)"),
            "r.json: train: \"early_stop\" needs \"evaluate_every\": 1");
  EXPECT_EQ(train_error(R"("mean": [0.5, 0.25], "std": [1])"),
            "r.json: train: \"mean\" has 2 numbers and \"std\" 1");
  EXPECT_EQ(train_error(R"("mean": [0.5], "std": [1], "normalise": true)"),
            "r.json: train: \"normalise\" measures what \"mean\" and \"std\" say");
  EXPECT_EQ(recipe_error(R"({"sweep": {"sparsity": [0.5]}})"),
            "r.json: \"sweep\" without \"prune\"");
  EXPECT_EQ(recipe_error(R"({"prune": {}})"), "r.json: prune: no \"config_list\"");
  EXPECT_EQ(sweep_error(""), "r.json: sweep: no \"sparsity\"");
  EXPECT_EQ(sweep_error(R"("sparsity": [])"), "r.json: sweep.sparsity: the list is empty");
  EXPECT_EQ(prune_error(R"("steps": 3)"),
            "r.json: prune: \"steps\" needs \"schedule\": \"linear\", \"agp\" or \"lottery\"");
  EXPECT_EQ(prune_error(R"("rewind_epoch": 1)"),
            "r.json: prune: \"rewind_epoch\" needs \"schedule\": \"lottery\"");
  EXPECT_EQ(prune_error(R"("schedule": "lottery", "steps": 2, "rewind_epoch": 3)"),
            "r.json: prune: \"rewind_epoch\" is above \"warmup_epochs\"");
  EXPECT_EQ(prune_error(R"("search_steps": 5)"),
            "r.json: prune: \"search_steps\" needs \"schedule\": \"annealing\"");
  EXPECT_EQ(
      prune_error(R"("schedule": "annealing", "budget": "macs")"),
      "r.json: prune: \"annealing\" moves channels between layers: its budget is \"channels\"");
  EXPECT_EQ(prune_error(R"("penalty": {"lasso": 1})"),
            "r.json: prune.penalty: unknown key \"lasso\".");
  EXPECT_EQ(sweep_error(R"("sparsity": [0.5], "criterion": ["level"])"),
            "r.json: sweep.criterion[0]: \"level\" zeroes single elements, and training would "
            "fill them again");
}

TEST(Recipe, ErrorsOfTheConfigListKeepTheirPlace) {
  EXPECT_EQ(recipe_error(R"({"prune": {"config_list": [{"sparse_ratio": 0.5}, {"op_type": []}]}})"),
            "r.json: prune.config_list[1]: unknown key \"op_type\". Did you mean \"op_types\"?");
  EXPECT_EQ(recipe_error(R"({"prune": {"config_list": [{"sparse_ratio": 2}]}})"),
            "r.json: prune.config_list[0].sparse_ratio: found 2, expected a number in [0, 1)");
  EXPECT_EQ(recipe_error("{\n  \"model\": \"cnn\",,\n}").substr(0, 23), "r.json:2:18: not JSON: ");
  EXPECT_EQ(recipe_error(R"({"train": {"lr": 1, "lr": 2}})"),
            "r.json: train: key \"lr\" occurs twice in one object");
}

TEST(Recipe, EqualSettingsAreEqualTexts) {
  const auto text = [](const std::string& json) { return settings_json(parse_recipe(json, "r")); };
  EXPECT_EQ(text("{}"), text(R"({"train": {"epochs": 10, "lr": 0.001, "flip": false}})"));
  EXPECT_EQ(text("{}"), text(R"({"model": "cnn", "data": "shapes", "$schema": "s"})"));
  const std::string list = R"("config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}])";
  EXPECT_EQ(text("{\"prune\": {" + list + "}}"),
            text(R"({"prune": {"steps": 1, "$schema": "s", "warmup_epochs": 1, )" + list + "}}"));
  EXPECT_EQ(text("{\"prune\": {" + list + R"(}, "sweep": {"sparsity": [0.1]}})"),
            text("{\"prune\": {" + list + "}}"));
  EXPECT_EQ(
      text("{\"prune\": {" + list + "}}"),
      text(R"({"prune": {"config_list": [{"sparse_ratio": 0.50, "op_types": ["Conv2d"]}]}})"));
}

// Checkpoints and ledgers go by these bytes.
TEST(Recipe, TheIdentityOfARunStaysAsItIs) {
  const Recipe recipe = parse_recipe(R"({
      "train": {"lr": 1e-5, "momentum": 1, "weight_decay": 0.0005, "flip": true, "seed": 7},
      "prune": {"penalty": {"slimming": 1e-4}, "schedule": "agp", "steps": 3, "scope": "global",
                "config_list": [{"sparse_ratio": 0.50, "op_types": ["Conv2d", "é"]},
                                {"exclude": true, "op_names": ["a\"b"]}], "round_to": 8}})",
                                     "r");
  EXPECT_EQ(settings_json(recipe),
            R"({"train":{"epochs":10,"batch":64,"optimizer":"adam","lr":1e-05,"momentum":1.0,)"
            R"("weight_decay":0.0005,"schedule":"constant","step_epochs":30,"step_factor":0.1,)"
            R"("label_smoothing":0.0,"flip":true,"crop":0,"cutout":0,"normalise":false,)"
            R"("evaluate_every":1,"early_stop":0,"batch_norm":false,"distill":0.0,)"
            R"("temperature":4.0,"precision":"fp32","memory_format":"auto","seed":7},)"
            R"("prune":{"config_list":[{"op_types":["Conv2d","é"],"sparse_ratio":0.5},)"
            R"({"exclude":true,"op_names":["a\"b"]}],"round_to":8,"scope":"global",)"
            R"("warmup_epochs":1,"schedule":"agp","steps":3,"epochs_between":1,"rewind_epoch":0,)"
            R"("search_steps":40,"search_samples":1000,)"
            R"("penalty":{"slimming":0.0001,"group":0.0}}})");
  Recipe swept = recipe;
  swept.prune->text =
      R"({"at": {"criterion": "l1", "sparsity": 0.10000000000000001}, "config": {}})";
  EXPECT_NE(
      settings_json(swept).find(
          R"("prune":{"at":{"criterion":"l1","sparsity":0.1},"config":{},"warmup_epochs":1,)"),
      std::string::npos);
  swept.prune->text = "{}";
  EXPECT_NE(settings_json(swept).find(R"("prune":{"warmup_epochs":1,)"), std::string::npos);
}

TEST(Recipe, EveryChangedKeyChangesTheText) {
  Recipe base = pruning(R"(, "schedule": "linear", "steps": 2)");
  const std::string before = settings_json(base);
  auto train = nlohmann::json::parse(before).at("train");
  EXPECT_EQ(train.size(), 22U);
  train["loss"] = "";
  for (const auto& [key, value] : train.items()) {
    nlohmann::json other = value;
    if (value.is_boolean()) other = !value.get<bool>();
    if (value.is_number()) other = value == 1 ? 0.5 : 1;  // momentum, shares: up to 1
    if (value.is_number_integer()) other = value.get<int>() + 1;
    if (key == "optimizer") other = "sgd";
    if (key == "schedule") other = "cosine";
    if (key == "precision") other = "bf16";
    if (key == "memory_format") other = "contiguous";
    if (key == "evaluate_every") other = 0;
    if (key == "loss") other = "cross_entropy:ignore=255";
    ASSERT_NE(other, value) << key;
    Recipe changed = base;
    const nlohmann::json document = {{"train", {{key, other}}}};
    changed.train = parse_recipe(document.dump(), "r").train;
    EXPECT_NE(settings_json(changed), before) << key;
  }
  for (const char* keys :
       {R"(, "schedule": "agp", "steps": 2)", R"(, "schedule": "linear", "steps": 3)",
        R"(, "schedule": "linear", "steps": 2, "epochs_between": 2)",
        R"(, "schedule": "linear", "steps": 2, "warmup_epochs": 2)",
        R"(, "schedule": "linear", "steps": 2, "criterion": "l2")",
        R"(, "schedule": "linear", "steps": 2, "penalty": {"slimming": 1e-4})",
        R"(, "schedule": "linear", "steps": 2, "penalty": {"group": 1e-4})",
        R"(, "schedule": "lottery", "steps": 2)",
        R"(, "schedule": "lottery", "steps": 2, "rewind_epoch": 1)",
        R"(, "schedule": "annealing", "search_steps": 9)",
        R"(, "schedule": "annealing", "search_samples": 9)"}) {
    EXPECT_NE(settings_json(pruning(keys)), before) << keys;
  }
  Recipe scaled = base;
  scaled.train = parse_recipe(R"({"train": {"mean": [0.5, 0.25], "std": [1, 2]}})", "r").train;
  EXPECT_NE(settings_json(scaled).find(R"(,"mean":[0.5,0.25],"std":[1.0,2.0],)"),
            std::string::npos);
  base.prune.reset();
  EXPECT_NE(settings_json(base), before);
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
}

TEST(Sparsities, ByHand) {
  using enum PruningSchedule;
  const auto at = [](PruningSchedule schedule, int steps, double ratio) {
    PruneSettings settings;
    settings.schedule = schedule;
    settings.steps = steps;
    return sparsities(settings, ratio);
  };
  EXPECT_EQ(at(kOneShot, 1, 0.6), (std::vector<double>{0.6}));
  EXPECT_EQ(at(kLinear, 1, 0.6), (std::vector<double>{0.6}));
  expect_near(at(kLinear, 4, 0.8), {0.2, 0.4, 0.6, 0.8});
  // 0.8 (1 - (3/4)^3), 0.8 (1 - (1/2)^3), 0.8 (1 - (1/4)^3)
  expect_near(at(kAgp, 4, 0.8), {0.4625, 0.7, 0.7875, 0.8});
  EXPECT_EQ(at(kAgp, 3, 0.7).back(), 0.7);  // to the bit
  expect_near(at(kAgp, 2, 0), {0, 0});
  // (1 - 0.25)^(1/2) stays of what was there, twice
  expect_near(at(kLottery, 2, 0.75), {0.5, 0.75});
}

TEST(AtSparsity, ChangesWhatRemoves) {
  const Recipe recipe = parse_recipe(R"({"prune": {"config_list": [
      {"op_types": ["Conv2d"], "sparse_ratio": 0.5, "criterion": "l2"},
      {"op_names": ["a"], "sparse_ratio": 0},
      {"op_names": ["b"], "exclude": true}]}})",
                                     "r");
  const ConfigList own = at_sparsity(recipe.prune->config, 0.25, "");
  EXPECT_EQ(own.entries[0].request.ratio, 0.25);
  EXPECT_EQ(own.entries[0].request.criterion, "l2");
  EXPECT_EQ(own.entries[1].request.ratio, 0);
  EXPECT_TRUE(own.entries[2].exclude);
  EXPECT_EQ(own.entries[2].request.ratio, 0);
  const ConfigList random = at_sparsity(recipe.prune->config, 0.75, "random");
  EXPECT_EQ(random.entries[0].request.ratio, 0.75);
  EXPECT_EQ(random.entries[0].request.criterion, "random");
  EXPECT_EQ(random.entries[1].request.criterion, "l1");
  EXPECT_EQ(at_sparsity(recipe.prune->config, 0, "l1").entries[0].request.ratio, 0);
  const ConfigList amount = parse_config(R"([{"budget": {"macs": 5}}])", "c.json");
  const Request swept = at_sparsity(amount, 0.3, "").entries.at(0).request;
  EXPECT_EQ(swept.ratio, 0.3);
  EXPECT_FALSE(swept.amount.has_value());
  EXPECT_EQ(swept.budget, Budget::kMacs);
}

TEST(ReadRecipe, ReadsThoseOfTheTree) {
  const Recipe recipe =
      read_recipe(std::string(PARSIMONY_SOURCE_DIR) + "/configs/cifar10_cnn_sweep.json");
  EXPECT_EQ(recipe.model, "cnn");
  EXPECT_EQ(recipe.sweep->sparsity.size(), 8U);
  const Recipe best =
      read_recipe(std::string(PARSIMONY_SOURCE_DIR) + "/configs/cifar10_cnn_best_sweep.json");
  EXPECT_EQ(best.sweep->seed.size(), 3U);
  EXPECT_THROW(read_recipe("/no/such/recipe.json"), IoError);
}

}  // namespace
}  // namespace parsimony
