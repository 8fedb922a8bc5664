// verify by both engines; ONNX Runtime where it is installed.
#include <gtest/gtest.h>

#include "parsimony/base/files.h"
#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

class CliVerify : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(place_.run("prune cnn.onnx -o small.onnx --ratio 0.5 --plan p.json").code, 0);
  }

  Workplace place_;
};

TEST_F(CliVerify, SaysWhereOnnxRuntimeWasLookedFor) {
  const Outcome outcome =
      place_.run("verify cnn.onnx small.onnx --plan p.json --engine onnxruntime",
                 {{"PARSIMONY_ONNXRUNTIME", place_ / "none.so"}});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("none.so"), std::string::npos) << outcome.err;
}

TEST_F(CliVerify, NotesAPlanOfAnotherFile) {
  const std::string doc_string = "\x32\x01x";  // another one
  place_.write("other.onnx", read_file(place_ / "cnn.onnx") + doc_string);
  const Outcome outcome = place_.run("verify other.onnx small.onnx --plan p.json");
  if (outcome.code == 3) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("made for another file"), std::string::npos) << outcome.out;
}

TEST_F(CliVerify, TellsRightFromWrong) {
  for (const std::string engine : {"onnxruntime", "executor"}) {
    const std::string end = " --plan p.json --engine " + engine;
    const Outcome right = place_.run("verify cnn.onnx small.onnx" + end);
    if (right.code == 3) continue;  // not installed
    EXPECT_EQ(right.code, 0) << right.err;
    EXPECT_NE(lines_with(right.out, "Proven"), "") << right.out;
    const Outcome wrong = place_.run("verify cnn.onnx cnn.onnx" + end);
    EXPECT_EQ(wrong.code, 1);
    EXPECT_TRUE(wrong.err.starts_with("parsimony: verification failed: output \"y\"")) << wrong.err;
  }
}

}  // namespace
}  // namespace parsimony::test
