// verify with a script in place of the oracle, and with the oracle where ONNX Runtime is installed.
#include <gtest/gtest.h>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

class CliVerify : public testing::Test {
 protected:
  void SetUp() override {
    if (place_.shell("command -v node").code != 0) GTEST_SKIP() << "there is no node";
    ASSERT_EQ(place_.run("prune cnn.onnx -o small.onnx --ratio 0.5 --plan p.json").code, 0);
  }

  /// Runs verify with a script that ends with `code`.
  Outcome with_script(const std::string& text, int code, const std::string& options = {}) {
    place_.write("oracle.mjs", text + "\nprocess.exitCode = " + std::to_string(code) + ";\n");
    return place_.run("verify cnn.onnx small.onnx --plan p.json --engine onnxruntime " + options,
                      {{"PARSIMONY_ORT_COMPARE", place_ / "oracle.mjs"}});
  }

  Workplace place_;
};

TEST_F(CliVerify, HandsItsOptionsOn) {
  const Outcome outcome =
      with_script("console.error('ort_compare.mjs: ' + process.argv.slice(2).join(' '));", 2,
                  "--inputs 5 --seed 7 --input 1x3x8x8");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "parsimony: --json --seed 7 --inputs 5 --input 1x3x8x8 -- cnn.onnx small.onnx p.json. "
            "See `parsimony verify --help`.\n");
}

TEST_F(CliVerify, PrintsTheWorstOutput) {
  const Outcome outcome = with_script(R"(console.log(JSON.stringify({
      verdict: 'MISMATCH', probes: 3, notes: ['a note'], outputs: [
        {name: 'fine', difference: 1e-7, tolerance: 1e-4},
        {name: 'bad', difference: 0.25, tolerance: 1e-4, at: 3, found: 1.5, wanted: 2},
        {name: 'less bad', difference: 0.1, tolerance: 1e-4}]}));)",
                                      1);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "parsimony: verification failed: output \"bad\" differs by 2.5e-01 of its largest "
            "value, tolerance 1.0e-04; element 3: found 1.5, wanted 2\n  a note\n");
}

TEST_F(CliVerify, AnOracleThatCannotRunTheModelIsUnsupported) {
  const Outcome outcome = with_script("console.error('ort_compare.mjs: no kernel');", 3);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, "parsimony: verify: the original cannot be run: no kernel\n");
}

TEST_F(CliVerify, AnOracleThatCrashesIsNoVerdict) {
  const Outcome outcome = with_script("throw new Error('boom');", 1);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("boom"), std::string::npos) << outcome.err;
}

TEST_F(CliVerify, SaysHowToInstallWhatIsMissing) {
  const std::string line = "verify cnn.onnx small.onnx --plan p.json --engine onnxruntime";
  const Outcome no_script = place_.run(line, {{"PARSIMONY_ORT_COMPARE", place_ / "none.mjs"}});
  EXPECT_EQ(no_script.code, 3);
  EXPECT_NE(no_script.err.find("set PARSIMONY_ORT_COMPARE"), std::string::npos) << no_script.err;
  const Outcome no_node = place_.shell("PATH=/nowhere '" PARSIMONY_BINARY "' " + line);
  EXPECT_EQ(no_node.code, 3);
  EXPECT_NE(no_node.err.find("tools/setup.sh"), std::string::npos) << no_node.err;
  const Outcome no_runtime = place_.run(line, {{"PARSIMONY_CACHE", place_ / "none"}});
  EXPECT_EQ(no_runtime.code, 3);
  EXPECT_NE(no_runtime.err.find("tools/ort/install.sh"), std::string::npos) << no_runtime.err;
}

TEST_F(CliVerify, TheOracleTellsRightFromWrong) {
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
