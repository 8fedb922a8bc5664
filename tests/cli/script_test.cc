// TorchScript through every command.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

class CliScript : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
    const char* data = std::getenv("PARSIMONY_TEST_DATA");
    if (data == nullptr || *data == '\0') {
      GTEST_SKIP() << "no real models: set PARSIMONY_TEST_DATA to the folder that holds them";
    }
    model_ = "'" + std::string(data) + "/models/torchscript/resnet20_cifar10.ts.pt' ";
  }

  Workplace place_;
  std::string model_;
};

TEST_F(CliScript, IsPrunedProvenReplayedAndVerified) {
  const Outcome pruned =
      place_.run("prune " + model_ + "-o o.pt --input 1x3x32x32 --ratio 0.5 --plan p.json");
  ASSERT_EQ(pruned.code, 0) << pruned.err;
  EXPECT_NE(lines_with(pruned.out, "Proven: "), "") << pruned.out;
  EXPECT_EQ(place_.run("apply " + model_ + "--plan p.json -o again.pt").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("o.pt"), place_.bytes("again.pt")));
  EXPECT_EQ(place_.run("verify " + model_ + "again.pt --plan p.json").code, 0);
  const Outcome wrong = place_.run("verify " + model_ + model_ + "--plan p.json");
  EXPECT_EQ(wrong.code, 1);
}

TEST_F(CliScript, WhatWasRecoveredIsWritten) {
  const std::string prune = "prune " + model_ + "--input 1x3x32x32 --ratio 0.5 ";
  ASSERT_EQ(place_.run(prune + "-o pruned.pt").code, 0);
  const Outcome recovered = place_.run(prune +
                                       "-o o.pt --plan p.json --recover bias,least-squares "
                                       "--calibration shapes:64,32 --samples 16");
  ASSERT_EQ(recovered.code, 0) << recovered.err;
  EXPECT_NE(lines_with(recovered.out, "Proven: "), "") << recovered.out;
  EXPECT_EQ(place_.run("apply " + model_ + "--plan p.json -o again.pt").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("o.pt"), place_.bytes("again.pt")));
  EXPECT_FALSE(same_bytes(place_.bytes("o.pt"), place_.bytes("pruned.pt")));
}

TEST_F(CliScript, IsInspectedAndExplained) {
  const Outcome inspected = place_.run("inspect " + model_ + "--input 1x3x32x32");
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_NE(inspected.out.find("layer1.0.conv1"), std::string::npos);
  EXPECT_EQ(place_.run("explain " + model_ + "--input 1x3x32x32 --node layer1.0.conv1").code, 0);
}

TEST_F(CliScript, IsMeasuredWithOtherBatches) {
  const Outcome outcome =
      place_.run("bench " + model_ + "--input 1x3x32x32 --batch 1,2 --runs 3 --engine libtorch");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "libtorch      2  resnet20_cifar10.ts.pt"), "") << outcome.out;
}

TEST_F(CliScript, AsksForTheInputs) {
  const Outcome outcome = place_.run("prune " + model_ + "-o o.pt --ratio 0.5");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("1x3x32x32"), std::string::npos) << outcome.err;
  EXPECT_FALSE(place_.has("o.pt"));
}

TEST_F(CliScript, AFullDiskLeavesTheOldFile) {
  place_.write("o.pt", "old");
  // Of one kilobyte each; the signal for it would kill the command before it could say anything.
  const Outcome outcome = place_.shell("trap '' XFSZ; ulimit -f 100; parsimony prune " + model_ +
                                       "-o o.pt --input 1x3x32x32 --no-verify --ratio 0.5");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("o.pt: cannot be written: File too large"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(place_.bytes("o.pt"), "old");
}

TEST_F(CliScript, ANamelessZipIsNoModel) {
  place_.write("bad.pt", std::string("PK\x03\x04 and nothing more"));
  const Outcome outcome = place_.run("inspect bad.pt --input 1x3");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
}

}  // namespace
}  // namespace parsimony::test
