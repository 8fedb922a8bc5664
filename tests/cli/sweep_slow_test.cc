// `sweep` with others beside it, killed, on full disks.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/cli/background.h"
#include "tests/cli/sweep_place.h"

namespace parsimony::test {
namespace {

class CliSweepSlow : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  }

  SweepPlace place_;
};

TEST_F(CliSweepSlow, PointsThatAreAddedAreTrainedAndNoOthers) {
  place_.recipe(R"("sparsity": [0.5], "criterion": ["l1"])");
  ASSERT_EQ(place_.sweep("--out s").code, 0);
  const std::string ledger = place_.bytes("s/ledger.jsonl");
  place_.recipe(R"("sparsity": [0.25, 0.5], "criterion": ["l2", "l1"])");
  const Outcome more = place_.sweep("--out s");
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(more.err.find("warm-up"), std::string::npos) << more.err;
  EXPECT_TRUE(place_.bytes("s/ledger.jsonl").starts_with(ledger));
  EXPECT_EQ(place_.points("s"),
            (Names{"l1 0.25 0", "l1 0.5 0", "l2 0.25 0", "l2 0.5 0", "none 0 0"}));
  EXPECT_EQ(lines_with(more.out, "note:"), "");
}

TEST_F(CliSweepSlow, ShardsAreMerged) {
  place_.recipe(R"("sparsity": [0.25, 0.5], "seed": [0, 1])");
  ASSERT_EQ(place_.sweep("--out whole --deterministic").code, 0);
  const Outcome first = place_.sweep("--out a --shard 1/2 --deterministic");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, "This part is done. When all parts are done, run: parsimony report a\n");
  ASSERT_EQ(place_.sweep("--out b --shard 2/2 --deterministic").code, 0);
  EXPECT_EQ(place_.points("a").size() + place_.points("b").size(), 6U);
  const Outcome merged = place_.run("report a b");
  ASSERT_EQ(merged.code, 0) << merged.err;
  EXPECT_EQ(lines_with(merged.out, "note:"), "");
  EXPECT_EQ(place_.lasting_report("a"), place_.lasting_report("whole"));
}

TEST_F(CliSweepSlow, SeedsInFoldersOfTheirOwnAreOneRun) {
  place_.recipe(R"("sparsity": [0.5], "seed": [0, 1])");
  ASSERT_EQ(place_.sweep("--out a --seed 7").code, 0);
  ASSERT_EQ(place_.sweep("--out b --seed 8").code, 0);
  EXPECT_EQ(place_.points("a"), (Names{"l1 0.5 7", "none 0 7"}));
  const Outcome merged = place_.run("report a b");
  ASSERT_EQ(merged.code, 0) << merged.err;
  EXPECT_EQ(lines_with(merged.out, "note:"), "");
}

TEST_F(CliSweepSlow, JobsShareThePointsAndTheMeasuredFormat) {
  place_.recipe(R"("sparsity": [0.25, 0.5, 0.75], "seed": [0, 1])");
  const Outcome outcome = place_.run("sweep --config r.json --threads 1 --jobs 3 --out s");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(place_.points("s").size(), 8U);
  EXPECT_EQ(place_.report("s").at("points").size(), 8U);
  EXPECT_EQ(lines_with(outcome.out, "note:"), "");
  size_t warm_ups = 0;
  for (size_t at = 0; (at = outcome.err.find("warm-up 1 of 1", at)) != std::string::npos; ++at) {
    ++warm_ups;
  }
  EXPECT_EQ(warm_ups, 2U) << outcome.err;
}

TEST_F(CliSweepSlow, AFolderNamedAsTheModelIsInNobodysWay) {
  place_.recipe(R"("sparsity": [0.5])");
  ASSERT_EQ(place_.sweep("--out cnn").code, 0);
  const Outcome again = place_.sweep("--out cnn");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err, "");
}

// The limit on a file's size stands for a full disk: the model is larger, the ledger is not.
TEST_F(CliSweepSlow, AFullDiskCostsNothingThatWasFinished) {
  place_.recipe(R"("sparsity": [0.5])");
  ASSERT_EQ(place_.sweep("--out s").code, 0);
  const std::string ledger = place_.bytes("s/ledger.jsonl");
  place_.recipe(R"("sparsity": [0.5, 0.75])");
  const Outcome full =
      place_.shell("trap '' XFSZ; ulimit -f 1000; parsimony " + SweepPlace::command("--out s"));
  EXPECT_EQ(full.code, 4) << full.err;
  EXPECT_NE(full.err.find("cannot be written: File too large"), std::string::npos) << full.err;
  EXPECT_EQ(place_.bytes("s/ledger.jsonl"), ledger);
  EXPECT_EQ(place_.files("s/claims", ""), 0);
  EXPECT_EQ(place_.files("s/models", ".pt"), 2);
  ASSERT_EQ(place_.sweep("--out s").code, 0);
  EXPECT_EQ(place_.points("s"), (Names{"l1 0.5 0", "l1 0.75 0", "none 0 0"}));
}

TEST_F(CliSweepSlow, WorkersDieWithTheirParent) {
  place_.recipe(R"("sparsity": [0.25, 0.5, 0.75])");
  Background run(place_, SweepPlace::command("--out s --jobs 2 --epochs 200"));
  ASSERT_TRUE(run.says("epoch 1 of 200", 2)) << place_.bytes("said");
  EXPECT_TRUE(run.group_lives());
  run.kill();
  for (int i = 0; i < 6000 && run.group_lives(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(run.group_lives());
}

/// Kills the sweep 20 times, each time after another number of steps and milliseconds; every
/// sweep that comes to its end in between is compared, and a new one begun.
void kill_again_and_again(const SweepPlace& place, const std::string& options,
                          const Json& requested) {
  std::mt19937 random(20261120);
  const auto draw = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  int kills = 0;
  for (int round = 0; kills < 20; ++round) {
    const std::string folder = "s" + std::to_string(round);
    const std::string command =
        SweepPlace::command("--deterministic --out " + folder + " " + options);
    while (kills < 20) {
      Background run(place, command);
      if (!run.says("", 1 + draw(3))) break;  // it is done
      std::this_thread::sleep_for(std::chrono::milliseconds(draw(60)));
      run.kill_all();
      ++kills;
    }
    const Outcome last = place.run(command);
    ASSERT_EQ(last.code, 0) << last.err;
    EXPECT_EQ(place.lasting_report(folder), requested) << folder;
    EXPECT_EQ(place.points(folder).size(), 6U);
    EXPECT_EQ(place.files(folder + "/claims", ""), 0);
    EXPECT_EQ(place.files(folder + "/checkpoints", ""), 2) << "the warm-up of each seed";
    EXPECT_EQ(place.files(folder + "/models", ""), 12);
  }
}

class CliSweepKilled : public CliSweepSlow {
 protected:
  void SetUp() override {
    CliSweepSlow::SetUp();
    if (IsSkipped()) return;
    place_.recipe(R"("sparsity": [0.25, 0.5], "seed": [0, 1])");
    const Outcome outcome = place_.sweep("--deterministic --out undisturbed");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    requested_ = place_.lasting_report("undisturbed");
  }

  Json requested_;
};

TEST_F(CliSweepKilled, LosesAndDoublesNothing) { kill_again_and_again(place_, "", requested_); }

TEST_F(CliSweepKilled, LosesAndDoublesNothingWithTwoJobs) {
  kill_again_and_again(place_, "--jobs 2", requested_);
}

}  // namespace
}  // namespace parsimony::test
