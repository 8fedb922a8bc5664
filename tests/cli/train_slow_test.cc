// Trainings that are killed and go on.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "parsimony/report/ledger.h"
#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include "tests/support/event_file.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

std::string tiny(int samples) {
  return "train --model cnn --batch 32 --threads 1 --memory-format contiguous --data shapes:" +
         std::to_string(samples) + ",64 ";
}

class CliTrainSlow : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  }

  Workplace place_;
};

TEST_F(CliTrainSlow, AKilledRunGoesOnToTheSameBytes) {
  const std::string command = tiny(512) + "--epochs 6 --deterministic ";
  ASSERT_EQ(place_.run(command + "-o whole.pt").code, 0);
  {
    Background run(place_, command + "-o o.pt --checkpoint c.pt --tensorboard logs");
    ASSERT_TRUE(run.says("epoch 2 of 6")) << place_.bytes("said");
    run.kill();
  }
  EXPECT_FALSE(place_.has("o.pt"));
  const Outcome rest =
      place_.run(command + "-o o.pt --checkpoint c.pt --report r.json --tensorboard logs");
  ASSERT_EQ(rest.code, 0) << rest.err;
  std::set<int64_t> steps;
  const Points losses = read_run(place_ / "logs").at("train/loss");
  for (const auto& [step, loss] : losses) steps.insert(step);
  EXPECT_EQ(steps, (std::set<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(event_files(place_ / "logs").size(), 2U);
  EXPECT_EQ(lines_with(rest.err, "resumes from c.pt"), "resumes from c.pt\n") << rest.err;
  EXPECT_EQ(lines_with(rest.err, "epoch 1 of 6"), "") << rest.err;
  EXPECT_EQ(read_ledger_point(place_.bytes("r.json"), "r").epochs.size(), 6U);
  EXPECT_TRUE(same_bytes(place_.bytes("o.pt"), place_.bytes("whole.pt")));
}

TEST_F(CliTrainSlow, ACheckpointOfAnotherRunIsLeftAlone) {
  ASSERT_EQ(place_.run(tiny(128) + "--epochs 1 --checkpoint c.pt").code, 0);
  const std::string before = place_.bytes("c.pt");
  const Outcome other = place_.run(tiny(128) + "--epochs 2 --checkpoint c.pt");
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err,
            "parsimony: c.pt: the checkpoint is from another run: recipe, data or model differ. "
            "Remove it, or pass another one with --checkpoint\n");
  EXPECT_TRUE(same_bytes(place_.bytes("c.pt"), before));
  place_.write("c.pt", before.substr(0, before.size() / 2));
  const Outcome torn = place_.run(tiny(128) + "--epochs 1 --checkpoint c.pt");
  EXPECT_EQ(torn.code, 4);
  EXPECT_EQ(torn.err.find("parsimony: c.pt: not a checkpoint of this version: "), 0U) << torn.err;
}

TEST_F(CliTrainSlow, ImagesHaveTheirChannelsLast) {
  const std::string command = "train --model cnn --data shapes:128,64 --epochs 1 ";
  ASSERT_EQ(place_.run(command + "-o a.pt").code, 0);
  ASSERT_EQ(place_.run(command + "--memory-format channels_last -o b.pt").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("a.pt"), place_.bytes("b.pt")));
}

TEST_F(CliTrainSlow, AFolderNamedAsTheModelIsInNobodysWay) {
  const Outcome outcome = place_.shell("mkdir cnn && parsimony " + tiny(128) + "--epochs 0");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(CliTrainSlow, ATeacherBelongsToTheRun) {
  ASSERT_EQ(place_.run(tiny(128) + "--epochs 1 -o a.pt").code, 0);
  ASSERT_EQ(place_.run(tiny(128) + "--epochs 1 --seed 1 -o b.pt").code, 0);
  const std::string command = tiny(128) + "--epochs 1 --distill 0.5 --checkpoint c.pt ";
  const Outcome taught = place_.run(command + "--teacher a.pt -o o.pt");
  ASSERT_EQ(taught.code, 0) << taught.err;
  EXPECT_FALSE(same_bytes(place_.bytes("o.pt"), place_.bytes("a.pt")));
  EXPECT_EQ(place_.run(command + "--teacher a.pt").code, 0);
  EXPECT_EQ(place_.run(command + "--teacher b.pt").code, 2);
  EXPECT_EQ(place_.run(command + "--teacher cnn").code, 4);  // nobody has taught it
}

}  // namespace
}  // namespace parsimony::test
