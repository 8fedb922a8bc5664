// `train` and `finetune` with the real component, on drawn shapes.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "parsimony/report/ledger.h"
#include "tests/cli/command.h"
#include "tests/support/event_file.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

const std::string kTiny =
    "train --model cnn --data shapes:128,64 --batch 32 --threads 1 --memory-format contiguous ";

constexpr const char* kPruning = R"({
  "train": {"epochs": 1},
  "prune": {"warmup_epochs": 1, "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]}})";

class CliTrain : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  }

  LedgerPoint report(const std::string& name) const {
    return read_ledger_point(place_.bytes(name), name);
  }

  Workplace place_;
};

TEST_F(CliTrain, WritesAModelAReportAndAProfile) {
  const Outcome outcome =
      place_.run(kTiny + "--epochs 2 -o o.pt --report r.json --profile p.json --seed 3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("epoch 2 of 2: loss "), std::string::npos) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "after "), "") << outcome.out;
  const Outcome inspected = place_.run("inspect o.pt --input 1x3x32x32");
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_NE(inspected.out.find("2,122,186"), std::string::npos) << inspected.out;

  const LedgerPoint point = report("r.json");
  EXPECT_EQ(point.model.name, "cnn");
  EXPECT_EQ(point.seed, 3U);
  EXPECT_EQ(point.data.train, 128);
  EXPECT_EQ(point.after.total, 64);
  EXPECT_EQ(point.epochs.size(), 2U);
  EXPECT_GT(point.train.total(), 0);
  EXPECT_EQ(place_.run("report r.json --out made").code, 0);

  std::set<std::string> names;
  const Json profile = Json::parse(place_.bytes("p.json"));
  for (const Json& event : profile.at("traceEvents")) {
    names.insert(event.at("name"));
    EXPECT_GE(event.at("dur").get<double>(), 0);
  }
  EXPECT_EQ(names, (std::set<std::string>{"wait", "forward", "backward", "optimizer", "rest"}));
}

TEST_F(CliTrain, PrunesOnTheWay) {
  place_.write("r.json", kPruning);
  const Outcome outcome =
      place_.run(kTiny + "--config r.json -o o.pt --plan plan.json --report out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const LedgerPoint point = report("out.json");
  EXPECT_EQ(point.criterion, "l1");
  EXPECT_EQ(point.sparsity, 0.5);
  EXPECT_EQ(point.params, (LedgerPoint::Pair{2'122'186, 1'059'306}));
  EXPECT_TRUE(point.proof && point.proof->holds());
  EXPECT_LT(point.bytes.after, point.bytes.before);
  EXPECT_EQ(point.bytes.after, static_cast<int64_t>(place_.bytes("o.pt").size()));
  EXPECT_NE(place_.run("inspect o.pt --input 1x3x32x32").out.find("1,059,306"), std::string::npos);
  EXPECT_EQ(Json::parse(place_.bytes("plan.json")).count("parsimony_plan"), 1U);
}

TEST_F(CliTrain, TellsTensorBoardOfEpochsAndCuts) {
  place_.write("r.json", kPruning);
  const std::string command = kTiny + "--config r.json --epochs 2 --schedule cosine --lr 0.01 " +
                              "--checkpoint c.pt --report out.json --tensorboard logs/run";
  const Outcome outcome = place_.run(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const LedgerPoint point = report("out.json");
  const auto share = [](const LedgerPoint::Score& score) {
    return static_cast<float>(score.share());
  };
  const std::map<std::string, Points> run = read_run(place_ / "logs/run");
  EXPECT_EQ(run.at("test/accuracy"), (Points{{1, share(point.before)},
                                             {2, share(point.epochs[0].score)},
                                             {3, share(point.after)}}));
  EXPECT_EQ(run.at("test/accuracy_pruned"), (Points{{1, share(point.pruned)}}));
  EXPECT_EQ(run.at("model/parameters"), (Points{{0, 2'122'186.F}, {1, 1'059'306.F}}));
  EXPECT_EQ(run.at("model/macs").back().second, static_cast<float>(point.macs.after));
  const Points losses = run.at("train/loss");
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_EQ(losses[2], std::pair(int64_t{3}, static_cast<float>(point.epochs[1].loss)));
  const Points rates = run.at("train/learning_rate");
  EXPECT_EQ(rates[0].second, 0.01F);
  EXPECT_LT(rates[2].second, rates[1].second);
  const float seconds = run.at("train/seconds_per_epoch").at(2).second;
  EXPECT_EQ(seconds, static_cast<float>(point.epochs[1].seconds));
  EXPECT_NEAR(run.at("train/samples_per_second").at(2).second * seconds, 128, 0.01);

  ASSERT_EQ(place_.run(command).code, 0);  // resumes where it had ended
  EXPECT_EQ(event_files(place_ / "logs/run").size(), 2U);
  EXPECT_EQ(read_run(place_ / "logs/run"), run);
}

TEST_F(CliTrain, RecoversBetweenTheCutAndTheTraining) {
  std::string recipe = kPruning;
  recipe.insert(recipe.find("\"config_list\""), R"("recover": "least-squares", )");
  place_.write("r.json", recipe);
  const Outcome outcome = place_.run(kTiny + "--config r.json -o o.pt --report out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE((outcome.out + outcome.err).find("least-squares: output error"), std::string::npos)
      << outcome.out;
  EXPECT_TRUE(report("out.json").proof && report("out.json").proof->holds());
}

TEST_F(CliTrain, OptionsGoBeforeTheRecipe) {
  place_.write("r.json", R"({"model": "resnet56", "data": "none", "train": {"epochs": 9, "lr": 9,
      "batch": 9, "optimizer": "adamw", "seed": 9, "evaluate_every": 1}})");
  const Outcome outcome = place_.run(
      "-q " + kTiny +
      "--config r.json --epochs 0 --optimizer sgd --lr 0.5 --momentum 0.25 --weight-decay 0.125 "
      "--schedule one_cycle --label-smoothing 0.0625 --flip 1 --crop 3 --cutout 5 --normalise 1 "
      "--early-stop 2 --temperature 3 --seed 7 --precision bf16 --test-samples 16 "
      "--train-samples 32 --loss cross_entropy:ignore=9 --report out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out + outcome.err, "");
  const LedgerPoint point = report("out.json");
  EXPECT_EQ(point.data.train, 32);
  EXPECT_EQ(point.data.test, 16);
  EXPECT_EQ(point.model.name, "cnn");
  EXPECT_EQ(
      Json::parse(point.config).at("train"),
      Json::parse(
          R"({"batch": 32, "batch_norm": false, "crop": 3, "cutout": 5, "distill": 0.0, "early_stop": 2,
                "epochs": 0, "evaluate_every": 1, "flip": true, "label_smoothing": 0.0625,
                "loss": "cross_entropy:ignore=9", "lr": 0.5, "memory_format": "contiguous", "momentum": 0.25, "normalise": true,
                "optimizer": "sgd", "precision": "bf16", "schedule": "one_cycle", "seed": 7,
                "step_epochs": 30, "step_factor": 0.1, "temperature": 3.0,
                "weight_decay": 0.125})"));
}

TEST_F(CliTrain, FinetuneTrainsAFileFurther) {
  ASSERT_EQ(place_.run(kTiny + "--epochs 1 -o o.pt").code, 0);
  const Outcome tuned = place_.run(
      "finetune o.pt -o tuned.pt --data shapes:128,64 --epochs 1 --threads 1 --report r.json "
      "--tensorboard logs");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(place_.run("inspect tuned.pt --input 1x3x32x32").code, 0);
  EXPECT_FALSE(same_bytes(place_.bytes("tuned.pt"), place_.bytes("o.pt")));
  EXPECT_EQ(report("r.json").model.sha256.size(), 64U);
  EXPECT_EQ(read_run(place_ / "logs").at("train/loss").size(), 1U);
}

TEST_F(CliTrain, MessagesOfCommandLinesThatAreWrong) {
  place_.write("rarely.json", R"({"train": {"evaluate_every": 2}})");
  place_.write("bad.json", R"({"train": {"epoch": 1}})");
  place_.write("verse.txt", "So long as men can breathe or eyes can see,\nSo long lives this.\n");
  place_.write("sweep.json",
               R"({"model": "cnn", "data": "shapes:64,32", "sweep": {"sparsity": [0.5]},
      "prune": {"config_list": [{"sparse_ratio": 0.5}]}})");
  expect_messages("train", place_);
}

}  // namespace
}  // namespace parsimony::test
