// `train --processes`: several processes train the network that one would.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include "tests/cli/images_net.h"
#include "tests/support/event_file.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

const std::string kTrain =
    "train --model cnn --batch 16 --threads 1 --seed 1 "
    "--memory-format contiguous --deterministic ";

const std::string kFew = "--data shapes:96,32 ";

class CliProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "needs libtorch";
  }

  Json trained(const std::string& arguments, const std::string& name) const {
    const Outcome outcome =
        place_.run(kTrain + kFew + arguments + " -o " + name + ".pt --report " + name);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? Json::parse(place_.bytes(name)) : Json();
  }

  /// One that a launcher started, in a thread.
  std::jthread launched(int rank, const std::string& arguments, Outcome& outcome) const {
    return std::jthread([this, rank, arguments, &outcome] {
      outcome = place_.run(kTrain + kFew + arguments + " --rank-timeout 120",
                           {{"RANK", std::to_string(rank)},
                            {"WORLD_SIZE", "2"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"PARSIMONY_STORE", "file:" + (place_ / "store")}});
    });
  }

  const Workplace place_;
};

TEST_F(CliProcesses, TrainAsOneDoes) {
  const Json one = trained("--epochs 2 --lr 1e-3", "one");
  const Json three = trained("--epochs 2 --lr 1e-3 --processes 3", "three");
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    EXPECT_NEAR(one["epochs"][epoch]["loss"].get<double>(),
                three["epochs"][epoch]["loss"].get<double>(), 1e-3);
  }
  EXPECT_EQ(three["accuracy"]["after"]["total"], 32);
  trained("--epochs 2 --lr 1e-3 --processes 3", "again");
  EXPECT_TRUE(same_bytes(place_.bytes("three.pt"), place_.bytes("again.pt")));
}

TEST_F(CliProcesses, CutOnTheWay) {
  place_.write("r.json", R"({"prune": {"warmup_epochs": 1, "schedule": "agp", "steps": 2,
      "criterion": "taylor", "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]}})");
  const Json one = trained("--config r.json --epochs 1", "one");
  const Json two =
      trained("--config r.json --epochs 1 --processes 2 --plan p.json --tensorboard logs", "two");
  EXPECT_EQ(two["params"]["after"], 1059306);
  EXPECT_EQ(two["params"], one["params"]);
  EXPECT_TRUE(two["proof"]["ran"].get<bool>()) << two;
  EXPECT_TRUE(place_.has("p.json"));
  EXPECT_EQ(event_files(place_ / "logs").size(), 1U);  // of rank 0
  EXPECT_EQ(read_run(place_ / "logs").at("model/parameters").back().second, 1059306.F);
}

TEST_F(CliProcesses, ALauncherMayStartThem) {
  Outcome outcomes[2];
  {
    const std::jthread first = launched(0, "--epochs 1 -o o.pt", outcomes[0]);
    const std::jthread second = launched(1, "--epochs 1 -o o.pt", outcomes[1]);
  }
  EXPECT_EQ(outcomes[0].code, 0) << outcomes[0].err;
  EXPECT_EQ(outcomes[1].code, 0) << outcomes[1].err;
  EXPECT_NE(outcomes[0].out, "");
  EXPECT_EQ(outcomes[1].out, "");
  trained("--epochs 1 --processes 2", "started");
  EXPECT_TRUE(same_bytes(place_.bytes("o.pt"), place_.bytes("started.pt")));
}

TEST_F(CliProcesses, AnInterruptEndsAllAndLeavesNothing) {
  const std::string temporary = place_ / "tmp";
  std::filesystem::create_directory(temporary);
  Background run(place_, kTrain + "--epochs 50 --data shapes:384,32 --processes 2 -o o.pt",
                 "TMPDIR=" + temporary);
  ASSERT_TRUE(run.says("epoch 1 of 50"));
  EXPECT_FALSE(std::filesystem::is_empty(temporary));
  run.kill(SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
  EXPECT_FALSE(run.group_lives());
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

TEST_F(CliProcesses, WhatDiffersIsNamed) {
  Outcome outcomes[2];
  {
    const std::jthread first = launched(0, "--epochs 1 -o o.pt", outcomes[0]);
    const std::jthread second = launched(1, "--epochs 2 -o o.pt", outcomes[1]);
  }
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(
        outcome.err,
        "parsimony: rank 1 and rank 0 differ in the settings; all ranks must have the same\n");
  }
  EXPECT_FALSE(place_.has("o.pt"));
}

TEST_F(CliProcesses, WhoComesAloneGivesUp) {
  const Outcome outcome = place_.run(
      kTrain + kFew + "--epochs 1 -o o.pt --rank-timeout 2",
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"PARSIMONY_STORE", "file:" + (place_ / "s")}});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("rank 0 of 2 on "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(", meeting the others: rank 1 is lost or did not arrive in time"),
            std::string::npos)
      << outcome.err;
}

TEST_F(CliProcesses, MistakesAreNamed) {
  EXPECT_EQ(place_.run("prune cnn.onnx -o o.onnx --ratio 0.5 --processes 2").err,
            "parsimony: --processes requires --calibration DATA. See `parsimony prune --help`.\n");
  EXPECT_EQ(place_
                .run("finetune cnn.onnx -o o.onnx --teacher cnn.onnx --loss outputs "
                     "--half-gradients --calibration random:8")
                .err,
            "parsimony: --loss outputs cannot be combined with --local-batch-norm, "
            "--half-gradients and --verify all. See "
            "`parsimony finetune --help`.\n");
  EXPECT_EQ(place_.run("sweep --demo --processes 2 --jobs 2").err,
            "parsimony: --jobs cannot be combined with --processes: run either points in parallel, "
            "or processes within each. See "
            "`parsimony sweep --help`.\n");
  EXPECT_EQ(
      place_.run(kTrain + kFew + "--epochs 1 -o o.pt", {{"RANK", "2"}, {"WORLD_SIZE", "2"}}).err,
      "parsimony: RANK is 2 and WORLD_SIZE is 2; expected 0 <= rank < size\n");
  EXPECT_EQ(
      place_.run(kTrain + kFew + "--epochs 1 -o o.pt", {{"RANK", "1"}, {"WORLD_SIZE", "2"}}).err,
      "parsimony: the launcher does not set a rendezvous; pass --store file:PATH in a shared "
      "folder or --store tcp:HOST:PORT, or set MASTER_ADDR and MASTER_PORT\n");
  EXPECT_EQ(place_
                .run(kTrain + kFew + "--epochs 1 -o o.pt --store here",
                     {{"RANK", "1"}, {"WORLD_SIZE", "2"}})
                .err,
            "parsimony: store \"here\": expected tcp:HOST:PORT, or file:PATH in a folder that all "
            "ranks see\n");
}

TEST_F(CliProcesses, RecoverTogether) {
  write_images_net(place_ / "net.onnx");
  const std::string command =
      "prune net.onnx --ratio 0.5 --criterion taylor --recover least-squares,outputs "
      "--recover-epochs 2 --calibration shapes:96,32 --samples 64 --threads 1 --metric cosine ";
  const auto recovered = [&](const std::string& arguments, const std::string& name) {
    const Outcome outcome =
        place_.run(command + arguments + " -o " + name + ".onnx --report " + name + ".json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(place_.bytes(name + ".json"))["recovery"]["steps"];
  };
  const Json one = recovered("", "one");
  const Json two = recovered("--processes 2", "two");
  ASSERT_EQ(two.size(), 2);
  EXPECT_NEAR(two.at(0).at("output_error").get<double>(),
              one.at(0).at("output_error").get<double>(),
              1e-3 * one.at(0).at("output_error").get<double>());
  EXPECT_LE(two.at(1).at("output_error").get<double>(), two.at(0).at("output_error").get<double>());
  const Outcome tuned = place_.run(
      "finetune two.onnx -o tuned.onnx --teacher net.onnx --loss outputs --epochs 2 --processes 2 "
      "--calibration shapes:96,32 --samples 64 --threads 1");
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_TRUE(place_.has("tuned.onnx"));
}

TEST_F(CliProcesses, SweepPointByPoint) {
  place_.write("r.json", R"({"model": "cnn", "data": "shapes:96,32", "train": {"epochs": 1},
      "prune": {"warmup_epochs": 1, "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]},
      "sweep": {"sparsity": [0.5]}})");
  const std::string command =
      "sweep --config r.json --out s --threads 1 --processes 2 --verify all";
  const Outcome outcome = place_.run(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(place_.has("s/report.html"));
  const std::string ledger = place_.bytes("s/ledger.jsonl");
  EXPECT_EQ(std::ranges::count(ledger, '\n'), 2);  // dense and half
  const Json half = Json::parse(ledger.substr(ledger.find('\n') + 1));
  const auto bytes = half["ranks"]["step_bytes"].get<std::vector<int64_t>>();
  ASSERT_EQ(bytes.size(), 2);
  EXPECT_LT(bytes[1], bytes[0]);
  EXPECT_EQ(half["ranks"]["samples_per_second"].size(), 2);
  EXPECT_GT(half["seconds"]["train"]["exchange"], 0);
  EXPECT_NE(place_.bytes("s/report.html").find("samples per second"), std::string::npos);
  const Outcome again = place_.run(command);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(place_.bytes("s/ledger.jsonl"), ledger);
}

TEST_F(CliProcesses, AreExaminedAndProfiled) {
  const Json doctor = Json::parse(place_.run("doctor --json --processes 2").out);
  const Json& findings = doctor["findings"];
  ASSERT_GE(findings.size(), 2);
  EXPECT_EQ(findings[findings.size() - 2]["subject"], "processes");
  EXPECT_TRUE(findings[findings.size() - 2]["found"].get<std::string>().starts_with("2 on "));
  EXPECT_NE(findings.back()["measured"].get<std::string>().find("1 MiB"), std::string::npos);
  trained("--epochs 1 --processes 2 --profile trace.json", "profiled");
  const Json trace = Json::parse(place_.bytes("trace.json"));
  std::map<std::string, int> seen;
  for (const Json& event : trace["traceEvents"]) {
    ++seen[event["name"].get<std::string>() + std::to_string(event["pid"].get<int>())];
  }
  EXPECT_GE(seen["all-reduce0"], 6);
  EXPECT_EQ(seen["all-reduce0"], seen["all-reduce1"]);
  EXPECT_EQ(seen["backward0"], seen["backward1"]);
}

TEST_F(CliProcesses, AKilledRankEndsAllAndTheRunResumes) {
  const std::string rest = "--epochs 6 --data shapes:384,32 --processes 2 -o ";
  ASSERT_EQ(place_.run(kTrain + rest + "whole.pt").code, 0);
  Background run(place_, kTrain + rest + "o.pt --checkpoint c.pt --rank-timeout 120");
  ASSERT_TRUE(run.says("epoch 2 of 6"));
  place_.shell(
      "for p in /proc/[0-9]*; do if [ \"$(readlink $p/cwd)\" = \"$PWD\" ] && "
      "tr '\\0' '\\n' < $p/environ | grep -qx RANK=1; then kill -9 ${p#/proc/}; fi; done");
  EXPECT_EQ(run.wait(), 128 + 9);
  EXPECT_FALSE(run.group_lives());
  const std::string said = place_.bytes("said");
  EXPECT_NE(said.find("rank 1 (process "), std::string::npos) << said;
  EXPECT_NE(said.find(": rank 1 is lost"), std::string::npos) << said;
  EXPECT_FALSE(place_.has("o.pt"));
  const Outcome resumed = place_.run(kTrain + rest + "o.pt --checkpoint c.pt");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("resumes from"), std::string::npos) << resumed.err;
  EXPECT_TRUE(same_bytes(place_.bytes("o.pt"), place_.bytes("whole.pt")));
}

}  // namespace
}  // namespace parsimony::test
