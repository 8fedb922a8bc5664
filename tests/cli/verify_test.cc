// verify by both engines; ONNX Runtime where it is installed.
#include <gtest/gtest.h>

#include <cstring>

#include "parsimony/base/files.h"
#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

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
  EXPECT_NE(outcome.out.find("made for a different file"), std::string::npos) << outcome.out;
}

TEST_F(CliVerify, TellsRightFromWrong) {
  for (const std::string engine : {"onnxruntime", "executor", "libtorch", "auto"}) {
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

TEST_F(CliVerify, OnnxRuntimeProvesWhereThereIsNoLibtorch) {
  if (!has_onnx_runtime()) GTEST_SKIP() << "there is no ONNX Runtime";
  const std::map<std::string, std::string> without = {
      {"PARSIMONY_TORCH_COMPONENT", "/none/parsimony_torch.so"}};
  const Outcome outcome = place_.run("prune cnn.onnx -o o.onnx --ratio 0.5 --plan q.json", without);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Proven"), "") << outcome.out;
  EXPECT_TRUE(same_bytes(place_.bytes("o.onnx"), place_.bytes("small.onnx")));
  EXPECT_EQ(place_.run("verify cnn.onnx o.onnx --plan q.json", without).code, 0);
  const std::map<std::string, std::string> nothing = {
      {"PARSIMONY_TORCH_COMPONENT", "/none/parsimony_torch.so"},
      {"PARSIMONY_ONNXRUNTIME", "/none/libonnxruntime.so"}};
  const Outcome unproven = place_.run("prune cnn.onnx -o n.onnx --ratio 0.5", nothing);
  EXPECT_EQ(unproven.code, 0) << unproven.err;
  EXPECT_EQ(lines_with(unproven.out, "Proven"), "") << unproven.out;
}

TEST_F(CliVerify, OnnxRuntimeFindsAChangedWeight) {
  if (!has_onnx_runtime()) GTEST_SKIP() << "there is no ONNX Runtime";
  const Outcome outcome =
      place_.run("prune cnn.onnx -o o.onnx --ratio 0.5 --engine onnxruntime --report r.json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Proven"), "") << outcome.out;
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(place_.bytes("small.onnx")));
  for (onnx::TensorProto& weight : *model.mutable_graph()->mutable_initializer()) {
    if (weight.name() != "w2") continue;
    const float kept = 1;
    if (weight.has_raw_data()) {
      std::memcpy(weight.mutable_raw_data()->data(), &kept, sizeof(kept));
    } else {
      weight.set_float_data(0, kept);
    }
  }
  save(model, place_ / "changed.onnx");
  const Outcome changed =
      place_.run("verify cnn.onnx changed.onnx --plan p.json --engine onnxruntime");
  EXPECT_EQ(changed.code, 1) << changed.out;
}

}  // namespace
}  // namespace parsimony::test
