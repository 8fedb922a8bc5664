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

class CliTrainFault : public testing::TestWithParam<Fault> {};

TEST_P(CliTrainFault, HasItsCodeAndMessageAndWritesNothing) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Workplace place;
  place.write("rarely.json", R"({"train": {"evaluate_every": 2}})");
  place.write("bad.json", R"({"train": {"epoch": 1}})");
  place.write("verse.txt", "So long as men can breathe or eyes can see,\nSo long lives this.\n");
  place.write("sweep.json",
              R"({"model": "cnn", "data": "shapes:64,32", "sweep": {"sparsity": [0.5]},
      "prune": {"config_list": [{"sparse_ratio": 0.5}]}})");
  const std::vector<std::string> before = place.results();
  const Outcome outcome = place.run(GetParam().arguments);
  EXPECT_EQ(outcome.code, GetParam().code);
  EXPECT_EQ(outcome.err, std::string("parsimony: ") + GetParam().message + "\n");
  EXPECT_EQ(place.results(), before);
}

constexpr Fault kTrainFaults[] = {
    {"train --data shapes -o o.pt", 2, "--model is missing, and the recipe does not say it"},
    {"train --model cnn -o o.pt", 2, "--data is missing, and the recipe does not say it"},
    {"train --model cn --data shapes -o o.pt", 2,
     "model \"cn\" is neither a file nor built in. Did you mean \"cnn\"? Built in are cnn, "
     "gpt_tiny, llama_tiny, mobilenet_v2, resnet18, resnet20, resnet56, vgg16_bn, vit_tiny."},
    {"train --model cnn --data shape -o o.pt", 2,
     "unknown data set \"shape\"; known are cifar10, cifar100, folder, mnist, npy, npz, "
     "safetensors, shapes, text. Did you mean \"shapes\"?"},
    {"train --model cnn --data cifar10:none -o o.pt", 4,
     "none/data_batch_1.bin: cannot be read: No such file or directory"},
    {"train --model cnn --data shapes --config bad.json -o o.pt", 2,
     "bad.json: train: unknown key \"epoch\". Did you mean \"epochs\"?"},
    {"train --model cnn --data shapes --config none.json -o o.pt", 4,
     "none.json: cannot be read: No such file or directory"},
    {"train --model cnn --data shapes --optimizer lion -o o.pt", 2,
     "--optimizer: found \"lion\", expected \"sgd\", \"adam\", \"adamw\" or \"muon\""},
    {"train --model cnn --data shapes --loss huber -o o.pt", 2,
     "loss \"huber\": labelled data take cross_entropy only, with :ignore=LABEL or without; other "
     "losses need arrays: parsimony finetune --calibration npz:FILE --loss"},
    {"train --model cnn --data shapes --loss huger -o o.pt", 2,
     "loss: found \"huger\", expected \"cross_entropy\", \"bce\", \"mse\", \"l1\", \"huber\", "
     "\"kl\" "
     "or "
     "\"ctc\"; with options behind it (huber:delta=0.5, cross_entropy:ignore=255, ctc:blank=0, "
     "weight=2), or for each output its own: boxes=huber,scores=cross_entropy"},
    {"train --model cnn --data shapes --config rarely.json --early-stop 2", 2,
     "command line: \"early_stop\" needs \"evaluate_every\": 1"},
    {"train --model cnn --data shapes --mean 0.5 --std 1,1 -o o.pt", 2,
     "command line: \"mean\" has 1 numbers and \"std\" 2"},
    {"train --model cnn --data shapes:4,4 --mean 0.5 --std 1 -o o.pt", 2,
     "mean and std have 1 numbers, the samples of \"shapes:4,4\" have 3 channels"},
    {"train --model cnn --data shapes --distill 0.5 -o o.pt", 2,
     "--distill needs a --teacher, or a recipe that prunes. See `parsimony train --help`."},
    {"train --model cnn --data shapes --plan p.json -o o.pt", 2,
     "--plan: the recipe has no \"prune\". See `parsimony train --help`."},
    {"train --model cnn --data shapes -o none/o.pt", 4,
     "none/o.pt: cannot be written: No such file or directory"},
    {"train --model cnn --data shapes:4,4 --tensorboard cnn.onnx", 4,
     "cnn.onnx: cannot be written: Not a directory"},
    {"train --model llama_tiny --data shapes:4,4 -o o.pt", 2,
     "model \"llama_tiny\" does not take samples of [3, 32, 32]; expected tokens: text:FILE"},
    {"train --model cnn --data text:verse.txt,length=8 -o o.pt", 2,
     "model \"cnn\" does not take samples of [8]; expected [c, h, w] with h = w, a multiple of 4"},
    {"train --model gpt_tiny --data text:verse.txt,length=0 -o o.pt", 2,
     "data \"text:verse.txt,length=0\": expected text:FILE,length=N, with N of at least 1"},
    {"train --model gpt_tiny --data text:verse.txt,length=8 --normalise 1 -o o.pt", 2,
     "data \"text:verse.txt,length=8\": tokens are indices, which have no mean: leave "
     "\"normalise\", mean and std out"},
    {"train --model cnn --data shapes --device tpu", 2,
     "--device \"tpu\": expected auto, cpu or cuda:N"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --criterion fisher --calibration shapes:16,8 --device "
     "tpu",
     2, "--device \"tpu\": expected auto, cpu or cuda:N"},
    {"sensitivity cnn.onnx --criterion fisher --calibration random:8 --device tpu", 2,
     "--device \"tpu\": expected auto, cpu or cuda:N"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --sandbox on --device cuda", 2,
     "--sandbox on: a command of yours (--metric, --latency-command), --processes or the driver of "
     "a --provider or --device cannot run in it; leave it at auto"},
    {"train --model cnn --data shapes --precision fp16 --device cpu --epochs 1", 3,
     "precision fp16 needs a CUDA device; the CPU has bf16 and fp32"},
    {"finetune none.pt -o o.pt --data shapes", 2,
     "model \"none.pt\" is neither a file nor built in. Built in are cnn, gpt_tiny, llama_tiny, "
     "mobilenet_v2, resnet18, resnet20, resnet56, vgg16_bn, vit_tiny."},
    {"finetune cnn.onnx --data shapes", 2,
     "--output is required. See `parsimony finetune --help`."},
    {"sweep --model cnn --data shapes --out o", 2,
     "--config FILE with a \"sweep\" is missing. See `parsimony sweep --help`."},
    {"sweep --config sweep.json", 2, "--out DIR is missing. See `parsimony sweep --help`."},
    {"sweep --config sweep.json --out cnn.onnx", 4, "cnn.onnx: cannot be written: Not a directory"},
    {"sweep --config sweep.json --out o --model cn", 2,
     "model \"cn\" is neither a file nor built in. Did you mean \"cnn\"? Built in are cnn, "
     "gpt_tiny, llama_tiny, mobilenet_v2, resnet18, resnet20, resnet56, vgg16_bn, vit_tiny."},
    {"sweep --config sweep.json --out o --model cn --jobs 3", 2,
     "model \"cn\" is neither a file nor built in. Did you mean \"cnn\"? Built in are cnn, "
     "gpt_tiny, llama_tiny, mobilenet_v2, resnet18, resnet20, resnet56, vgg16_bn, vit_tiny."},
    {"sweep --config sweep.json --out o --shard 3/2", 2,
     "--shard \"3/2\": expected I/N with 1 <= I <= N"},
};

INSTANTIATE_TEST_SUITE_P(CommandLines, CliTrainFault, testing::ValuesIn(kTrainFaults));

}  // namespace
}  // namespace parsimony::test
