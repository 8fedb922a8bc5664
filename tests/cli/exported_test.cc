// .pt2 files of torch.export through every command.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

class CliExported : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch && !has_onnx_runtime()) GTEST_SKIP() << "nothing runs a network here";
  }

  static std::string program(const std::string& name) {
    return std::filesystem::absolute("tests/exported/" + name).string() + " ";
  }

  Workplace place_;
};

TEST_F(CliExported, IsPrunedProvenReplayedAndVerified) {
  for (const std::string name : {"tiny_image.2.6.pt2", "nested.2.14.pt2"}) {
    const Outcome pruned =
        place_.run("prune " + program(name) + "-o o.pt2 --ratio 0.5 --plan p.json");
    ASSERT_EQ(pruned.code, 0) << pruned.err;
    EXPECT_NE(lines_with(pruned.out, "Proven: "), "") << pruned.out;
    EXPECT_EQ(place_.run("apply " + program(name) + "--plan p.json -o again.pt2").code, 0);
    EXPECT_TRUE(same_bytes(place_.bytes("o.pt2"), place_.bytes("again.pt2")));
    EXPECT_EQ(place_.run("verify " + program(name) + "again.pt2 --plan p.json").code, 0);
    EXPECT_EQ(place_.run("verify " + program(name) + program(name) + "--plan p.json").code, 1);
  }
}

TEST_F(CliExported, IsInspectedExplainedAndExported) {
  const Outcome inspected = place_.run("inspect " + program("tiny_image.2.14.pt2"));
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_NE(lines_with(inspected.out, "conv1 "), "") << inspected.out;
  EXPECT_EQ(place_.run("explain " + program("tiny_image.2.14.pt2") + "--node conv1").code, 0);
  ASSERT_EQ(place_.run("prune " + program("tiny_image.2.14.pt2") + "-o o.pt2 --ratio 0.5").code, 0);
  const Outcome exported = place_.run("export o.pt2 -o o.onnx");
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(lines_with(exported.out, "Proven: ") == "", !kHasTorch) << exported.out;
}

TEST_F(CliExported, WithoutLibtorchItsExportIsNotCalledProven) {
  const Outcome exported = place_.run("export " + program("tiny_image.2.14.pt2") + "-o o.onnx",
                                      {{"PARSIMONY_TORCH_COMPONENT", "/none/component.so"}});
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_NE(exported.out.find("note: not verified: "), std::string::npos) << exported.out;
  EXPECT_EQ(exported.out.find("Proven"), std::string::npos) << exported.out;
  EXPECT_EQ(place_.run("inspect o.onnx").code, 0);
}

TEST_F(CliExported, OtherInputsMayBeGiven) {
  const Outcome outcome = place_.run("prune " + program("tiny_image.2.14.pt2") +
                                     "-o o.pt2 --ratio 0.5 --input 3x3x8x8");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("x[3, 3, 8, 8]"), std::string::npos) << outcome.out;
}

TEST_F(CliExported, IsNotTrained) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Outcome outcome = place_.run("finetune " + program("tiny_image.2.14.pt2") +
                                     "--data shapes:8,8 --epochs 1 -o o.pt2");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("torch.export"), std::string::npos) << outcome.err;
  EXPECT_FALSE(place_.has("o.pt2"));
}

}  // namespace
}  // namespace parsimony::test
