// What a command may take and do: --sandbox, --max-memory, --max-seconds.
#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

bool kernel_has_landlock() {
  return syscall(__NR_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

/// A kernel that tries to do harm while the proof runs it; where it writes is another folder than
/// the output's.
class CliSandbox : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernel_has_landlock()) GTEST_SKIP() << "the kernel has no Landlock";
    if (!has_onnx_runtime()) GTEST_SKIP() << "there is no ONNX Runtime";
    save(two_convolutions("b = acme.Swish5 (a)"), place_ / "swish.onnx");
    place_.write("acme.rules", "operator acme::Swish5\n  line x[..s] -> y[..s]\n");
    ASSERT_EQ(place_.shell("mkdir tmp out elsewhere times").code, 0);
  }

  Outcome prune(const std::string& more) const {
    return run("prune swish.onnx -o out/small.onnx --ratio 0.5 " + more);
  }

  Outcome run(const std::string& command) const {
    return place_.run(
        command +
            " --engine onnxruntime --rules acme.rules --ort-library " PARSIMONY_ACME_OPERATORS,
        {{"ACME_MISCHIEF", place_ / "elsewhere/stolen"},
         {"TMPDIR", place_ / "tmp"},
         {"XDG_CACHE_HOME", place_ / "cache"},
         {"PARSIMONY_ONNXRUNTIME", onnx_runtime()}});
  }

  Workplace place_;
};

TEST_F(CliSandbox, AKernelOpensNoSocketStartsNothingAndWritesNowhereElse) {
  const Outcome outcome = prune("");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Proven"), "") << outcome.out;
  for (const std::string what : {"socket", "write", "program"}) {
    const std::string lines = lines_with(outcome.err, "acme: " + what);
    EXPECT_NE(lines, "") << outcome.err;
    EXPECT_EQ(lines.find("Success"), std::string::npos) << lines;
  }
  EXPECT_NE(lines_with(outcome.err, "acme: socket: Operation not permitted"), "");
  EXPECT_NE(lines_with(outcome.err, "acme: write: Permission denied"), "");
  EXPECT_FALSE(place_.has("elsewhere/stolen"));
  EXPECT_TRUE(place_.has("out/small.onnx"));
}

TEST_F(CliSandbox, CommandsThatMeasureHaveOneToo) {
  for (const std::string command :
       {"sensitivity swish.onnx --ratios 0.5", "bench swish.onnx --runs 1"}) {
    const Outcome outcome = run(command);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(lines_with(outcome.err, "acme: socket: Operation not permitted"), "") << command;
    EXPECT_FALSE(place_.has("elsewhere/stolen")) << command;
  }
}

TEST_F(CliSandbox, OnnxRuntimeKeepsNoRecordOfItsUse) {
  const Outcome outcome =
      place_.run("prune cnn.onnx -o out/small.onnx --ratio 0.5 --engine onnxruntime --sandbox off",
                 {{"HOME", place_ / "home"}, {"PARSIMONY_ONNXRUNTIME", onnx_runtime()}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(place_.has("home/.cache/Microsoft"));
}

TEST_F(CliSandbox, WritesWhereALinkLeadsAndTheTableOfTimes) {
  ASSERT_EQ(
      place_.shell("echo > elsewhere/small.onnx; ln -s ../elsewhere/small.onnx out/link.onnx").code,
      0);
  const Outcome outcome = place_.run(
      "prune cnn.onnx -o out/link.onnx --no-verify --engine onnxruntime --threads 1 "
      "--budget latency_ms=90% --latency-table times/board.json --sandbox on",
      {{"TMPDIR", place_ / "tmp"},
       {"XDG_CACHE_HOME", place_ / "cache"},
       {"PARSIMONY_ONNXRUNTIME", onnx_runtime()}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(place_.has("times/board.json"));
}

TEST_F(CliSandbox, CanBeSwitchedOff) {
  const Outcome outcome = prune("--sandbox off");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.err, "acme: socket: Success"), "") << outcome.err;
  EXPECT_TRUE(place_.has("elsewhere/stolen"));
}

TEST_F(CliSandbox, GoesWithoutCommandsOfTheUsers) {
  const Outcome outcome = prune("--sandbox on --metric 'wc -c < {model}'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(
      outcome.err.starts_with("parsimony: --sandbox on cannot be combined with user commands"))
      << outcome.err;
  EXPECT_EQ(prune("--metric 'wc -c < {model}'").code, 0) << "auto leaves it out";
}

// 2^30 numbers that the graph only says.
constexpr char kHuge[] = R"(
    agraph (float[N, 3, 8, 8] x) => (float[N, 5] y) <int64[1] many = {1073741824}> {
      a = Conv <pads = [1, 1, 1, 1]> (x, w1)
      z = ConstantOfShape (many)
      s = ReduceSum <keepdims = 0> (z)
      b = Add (a, s)
      c = GlobalAveragePool (b)
      d = Flatten (c)
      y = Gemm <transB = 1> (d, w2)
    })";

TEST(CliLimits, MemoryIsBounded) {
  if (!has_onnx_runtime()) GTEST_SKIP() << "there is no ONNX Runtime";
  const Workplace place;
  onnx::ModelProto model = model_of(kHuge);
  add_weight(model, "w1", "8x3x3x3");
  add_weight(model, "w2", "5x8");
  save(model, place / "huge.onnx");
  const Outcome outcome = place.run(
      "prune huge.onnx -o o.onnx --ratio 0.5 --engine onnxruntime --max-memory 600M --report "
      "r.json");
  // ONNX Runtime gives up with the process, or says that it cannot run the network.
  EXPECT_TRUE(outcome.code == 3 || lines_with(outcome.out, "Not proven") != "") << outcome.out;
  if (outcome.code == 3) {
    EXPECT_NE(outcome.err.find("--max-memory was exceeded"), std::string::npos) << outcome.err;
    EXPECT_FALSE(place.has("o.onnx"));
  }
  EXPECT_EQ(place.run("prune huge.onnx -o o.onnx --max-memory much").code, 2);
}

// Whatever aborts while there is memory is a crash, and must not look like a limit.
TEST(CliLimits, AnAbortWithMemoryLeftIsACrash) {
  const Workplace place;
  for (const std::string limit : {"--max-memory 4G", "--max-memory 1G --max-seconds 100", ""}) {
    const Outcome outcome = place.shell("sleep 3 | parsimony " + limit +
                                        " --after-input inspect cnn.onnx & pid=$!\n"
                                        "sleep 1; kill -ABRT $pid; wait $pid");
    EXPECT_EQ(outcome.code, 128 + SIGABRT) << limit;
    EXPECT_EQ(outcome.err.find("max-memory"), std::string::npos) << outcome.err;
  }
}

// A loop without an end.
constexpr char kEndless[] = R"(
    agraph (float[N, 3, 8, 8] x) => (float[N, 5] y, float s)
    <int64 trips = {9223372036854775807}, bool go = {1}, float zero = {0}> {
      a = Conv <pads = [1, 1, 1, 1]> (x, w1)
      s = Loop <body = body (int64 i, bool c, float p) => (bool d, float q) {
        d = Identity (c)
        q = Cos (p)
      }> (trips, go, zero)
      c = GlobalAveragePool (a)
      d = Flatten (c)
      y = Gemm <transB = 1> (d, w2)
    })";

TEST(CliLimits, TimeIsBounded) {
  if (!has_onnx_runtime()) GTEST_SKIP() << "there is no ONNX Runtime";
  const Workplace place;
  onnx::ModelProto model = model_of(kEndless);
  add_weight(model, "w1", "8x3x3x3");
  add_weight(model, "w2", "5x8");
  save(model, place / "endless.onnx");
  const Outcome outcome =
      place.run("prune endless.onnx -o o.onnx --ratio 0.5 --engine onnxruntime --max-seconds 2");
  EXPECT_EQ(outcome.code, 3) << outcome.out;
  EXPECT_EQ(outcome.err.substr(outcome.err.rfind("parsimony:")),
            "parsimony: exceeded --max-seconds of processor time\n");
  EXPECT_FALSE(place.has("o.onnx"));
}

}  // namespace
}  // namespace parsimony::test
