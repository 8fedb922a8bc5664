// TorchScript written as ONNX by the command.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

class CliExport : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
    const char* data = std::getenv("PARSIMONY_TEST_DATA");
    if (data == nullptr || *data == '\0') {
      GTEST_SKIP() << "no real models: set PARSIMONY_TEST_DATA to the folder that holds them";
    }
    folder_ = std::string(data) + "/models/torchscript/";
    model_ = "'" + folder_ + "resnet20_cifar10.ts.pt' ";
  }

  Workplace place_;
  std::string folder_;
  std::string model_;
};

TEST_F(CliExport, WritesAndProves) {
  const Outcome outcome = place_.run("export " + model_ + "-o o.onnx --input 1x3x32x32");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "input "), "input   x float32[1, 3, 32, 32]\n");
  EXPECT_EQ(lines_with(outcome.out, "output "), "output  output float32[1, 10]\n");
  EXPECT_NE(lines_with(outcome.out, "ONNX opset 17, "), "") << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "Proven: largest difference "), "") << outcome.out;
  EXPECT_EQ(place_.run("inspect o.onnx").code, 0);
}

TEST_F(CliExport, FollowsPruneAndLeavesTheBatchOpen) {
  ASSERT_EQ(place_.run("prune " + model_ + "-o s.pt --input 1x3x32x32 --ratio 0.5").code, 0);
  const Outcome outcome = place_.run(
      "export s.pt -o s.onnx --input 1x3x32x32 --dynamic-batch --output-name logits --threads 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "output "), "output  logits float32[batch, 10]\n");
  EXPECT_NE(outcome.out.find("on 6 random inputs"), std::string::npos) << outcome.out;
  EXPECT_EQ(place_.run("prune s.onnx -o again.onnx --ratio 0.5").code, 0);
}

TEST_F(CliExport, SaysWhichLineCannotBeWritten) {
  const Outcome outcome = place_.run("export '" + folder_ +
                                     "silero_vad.jit' -o o.onnx "
                                     "--input 1x512 --input :int64=16000");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("vad_annotator.py:688"), std::string::npos) << outcome.err;
  EXPECT_FALSE(place_.has("o.onnx"));
}

TEST_F(CliExport, RefusesWhatIsNoTorchScript) {
  const Outcome outcome = place_.run("export cnn.onnx -o o.onnx");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("not a TorchScript"), std::string::npos) << outcome.err;
  EXPECT_EQ(place_.run("export missing.pt -o o.onnx").code, 4);
  EXPECT_EQ(place_.run("export " + model_ + "-o o.onnx").code, 2);
  EXPECT_FALSE(place_.has("o.onnx"));
}

}  // namespace
}  // namespace parsimony::test
