// --rules and --ort-library: operators of a domain that nobody knows. tests/cli/component/
// acme_operators.cc computes them.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

constexpr const char* kRules = R"(# Operators of acme.
operator acme::Swish5
  line x[..s] -> y[..s]

operator acme::GatedUnit
  line x[n (2 c) ..s] -> y[n c ..s]

operator acme::ChannelNorm
  line x[n c ..s] -> y[n c ..s] ; mixes c

operator acme::Dense
  line x[n i] w[o i] -> y[n o] ; macs w n
  linear matrix-product weight w layer Gemm plain
)";

const std::string kLibrary = " --ort-library " PARSIMONY_ACME_OPERATORS;

class CliOwnOperators : public testing::Test {
 protected:
  CliOwnOperators() {
    place_.write("acme.rules", kRules);
    save(two_convolutions("b = acme.Swish5 (a)"), place_ / "swish.onnx");
    save(two_convolutions("b = acme.GatedUnit (a)", "16"), place_ / "gated.onnx");
    save(two_convolutions("b = acme.ChannelNorm (a)"), place_ / "norm.onnx");
  }

  /// Prunes half of the channels, with a plan.
  Outcome prune(const std::string& model, const std::string& more) const {
    return place_.run("prune " + model + " -o small.onnx --ratio 0.5 --plan p.json" + more);
  }

  Workplace place_;
};

/// Those of the kernels, which both executors compute with.
class CliOwnKernels : public CliOwnOperators {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "there is no libtorch";
    if (!has_onnx_runtime()) GTEST_SKIP() << "there is no ONNX Runtime";
  }
};

std::string parameters(const Outcome& outcome) { return lines_with(outcome.out, "parameters"); }

TEST_F(CliOwnOperators, HoldTheirChannelsWithoutARule) {
  EXPECT_NE(place_.run("explain swish.onnx").out.find("unknown operator acme.Swish5"),
            std::string::npos);
  const Outcome outcome = prune("swish.onnx", "");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(parameters(outcome), "parameters      686     686  100.0%\n") << outcome.out;
}

TEST_F(CliOwnOperators, ArePrunedByTheirRule) {
  const Outcome outcome = prune("swish.onnx", " --rules acme.rules");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // 8·27 + 8 + 6·72 + 30 before, 4·27 + 4 + 3·36 + 15 after.
  EXPECT_EQ(parameters(outcome), "parameters      686     235  34.3%\n") << outcome.out;
  if (kHasTorch) {
    EXPECT_NE(lines_with(outcome.out, "Not proven").find("--ort-library can provide a kernel"),
              std::string::npos)
        << outcome.out;
  }
  const Outcome gated = prune("gated.onnx", " --rules acme.rules");
  // Of 16 channels in front, the first four of both halves leave, or others like them.
  EXPECT_EQ(parameters(gated), "parameters      910     347  38.1%\n") << gated.out << gated.err;
}

TEST_F(CliOwnOperators, RulesStandBeforeOrBehindAnyCommand) {
  for (const char* arguments :
       {"--rules acme.rules explain swish.onnx", "explain --rules acme.rules swish.onnx",
        "explain swish.onnx --rules=acme.rules", "inspect swish.onnx --rules acme.rules",
        "sensitivity swish.onnx --rules acme.rules --help"}) {
    const Outcome outcome = place_.run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
    EXPECT_EQ(outcome.out.find("unknown operator"), std::string::npos) << arguments;
  }
}

TEST_F(CliOwnOperators, SayWhereARuleIsWrong) {
  place_.write("bad.rules", "operator acme::Swish5\n  line x[n c -> y[n c]\n");
  const Outcome outcome = prune("swish.onnx", " --rules bad.rules");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "parsimony: bad.rules:2:14: expected a name\n");
  EXPECT_FALSE(place_.has("small.onnx"));
  EXPECT_EQ(prune("swish.onnx", " --rules acme.rules --rules acme.rules").err,
            "parsimony: acme.rules:2:10: operator \"acme::Swish5\" has a rule already\n");
  const Outcome missing = prune("swish.onnx", " --rules none.rules");
  EXPECT_EQ(missing.code, 4);
  EXPECT_EQ(missing.err, "parsimony: none.rules: cannot be read: No such file or directory\n");
}

TEST_F(CliOwnOperators, SayWhatIsWrongWithALibrary) {
  const Outcome missing = prune("swish.onnx", " --ort-library none.so");
  EXPECT_EQ(missing.code, 3);
  EXPECT_EQ(missing.err,
            "parsimony: --ort-library none.so cannot be loaded: none.so: cannot open shared object "
            "file: No such file or directory\n");
  const Outcome other = prune("swish.onnx", " --ort-library libc.so.6");
  EXPECT_EQ(other.code, 3);
  EXPECT_EQ(other.err,
            "parsimony: --ort-library libc.so.6 is a library, but not one of custom operators: it "
            "has no RegisterCustomOps\n");
}

TEST_F(CliOwnKernels, ProveThatOutputsAreEqual) {
  for (const std::string model : {"swish.onnx", "gated.onnx"}) {
    const Outcome outcome = prune(model, " --rules acme.rules" + kLibrary);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(lines_with(outcome.out, "Proven: largest difference"), "") << outcome.out;
    for (const std::string engine : {"executor", "onnxruntime"}) {
      const std::string end = " --plan p.json --engine " + engine + kLibrary;
      const Outcome right = place_.run("verify " + model + " small.onnx" + end);
      EXPECT_EQ(right.code, 0) << right.err;
      EXPECT_NE(lines_with(right.out, "Proven"), "") << right.out;
      EXPECT_EQ(place_.run("verify " + model + " " + model + end).code, 1);
    }
  }
}

/// A layer of one's own loses rows and columns of its weight.
TEST_F(CliOwnKernels, MayBeLayers) {
  onnx::ModelProto model = model_of(R"(<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
    agraph (float[N, 6] x) => (float[N, 5] y) {
      a = acme.Dense (x, w1)
      b = Relu (a)
      c = acme.Dense (b, w2)
      d = acme.ChannelNorm (c)
      y = acme.Dense (d, w3)
    })");
  add_weight(model, "w1", "8x6");
  add_weight(model, "w2", "8x8");
  add_weight(model, "w3", "5x8");
  save(model, place_ / "dense.onnx");
  const Outcome outcome = prune("dense.onnx", " --op-types Gemm --rules acme.rules" + kLibrary);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // 48 + 64 + 40 before, 24 + 16 + 20 after.
  EXPECT_EQ(parameters(outcome), "parameters      152     60  39.5%\n") << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "Proven"), "") << outcome.out;
}

TEST_F(CliOwnKernels, RunWhateverRunsTheNetwork) {
  const std::string own = " --rules acme.rules" + kLibrary;
  EXPECT_EQ(place_.run("sensitivity swish.onnx" + own).code, 0);
  const Outcome exact = prune("swish.onnx", " --constants exact" + own);
  EXPECT_EQ(exact.code, 0) << exact.err;
  EXPECT_NE(lines_with(exact.out, "Proven"), "") << exact.out;
}

/// Half of the pairs that such a rule names are others.
TEST_F(CliOwnKernels, RefuteAWrongRule) {
  place_.write("wrong.rules",
               "operator acme::GatedUnit\n  line x[n (c 2) ..s] -> y[n c ..s]\n"
               "operator acme::ChannelNorm\n  line x[..s] -> y[..s]\n");
  for (const char* model : {"gated.onnx", "norm.onnx"}) {
    const Outcome outcome = prune(model, " --rules wrong.rules" + kLibrary);
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    EXPECT_NE(outcome.err.find("verification failed: output \"y\""), std::string::npos)
        << outcome.err;
    EXPECT_FALSE(place_.has("small.onnx"));
  }
}

TEST_F(CliOwnKernels, ThatMixRunOnTheChannelsThatRemain) {
  const Outcome outcome = prune("norm.onnx", " --rules acme.rules" + kLibrary);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Proven").find("with the removed channels absent"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(place_.run("verify norm.onnx small.onnx --plan p.json" + kLibrary).code, 0);
  EXPECT_EQ(place_.run("verify norm.onnx norm.onnx --plan p.json" + kLibrary).code, 1);
  const Outcome exact = prune("norm.onnx", " --exact-only --rules acme.rules" + kLibrary);
  EXPECT_EQ(exact.code, 0) << exact.err;
  EXPECT_EQ(parameters(exact), "parameters      686     455  66.3%\n") << exact.out;
  EXPECT_NE(lines_with(exact.out, "Proven"), "") << exact.out;
}

/// On fewer channels the kernel does what the rule says; on all of them it does not.
TEST_F(CliOwnKernels, ThatMixAndMoveChannelsAreNotProven) {
  save(two_convolutions("b = acme.FlippedNorm (a)"), place_ / "flipped.onnx");
  place_.write("flipped.rules",
               "operator acme::FlippedNorm\n  line x[n c ..s] -> y[n c ..s] ; mixes c\n");
  const Outcome outcome = prune("flipped.onnx", " --rules flipped.rules" + kLibrary);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Not proven").find("it mixes channels"), std::string::npos)
      << outcome.out;
}

TEST_F(CliOwnKernels, HaveNoGradients) {
  save(two_convolutions("b = acme.Swish5 (a)", "8", "32"), place_ / "wide.onnx");
  const Outcome outcome = prune("wide.onnx",
                                " --criterion taylor --calibration shapes --samples 8 --rules "
                                "acme.rules" +
                                    kLibrary);
  EXPECT_EQ(outcome.code, 3) << outcome.out;
  EXPECT_NE(outcome.err.find("computes no gradients"), std::string::npos) << outcome.err;
}

TEST_F(CliOwnKernels, SayThatOnnxRuntimeIsMissing) {
  const std::string arguments =
      "prune swish.onnx -o small.onnx --ratio 0.5 --rules acme.rules" + kLibrary;
  const Outcome outcome = place_.run(arguments, {{"PARSIMONY_ONNXRUNTIME", place_ / "none.so"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Not proven").find("none.so"), std::string::npos)
      << outcome.out;
}

}  // namespace
}  // namespace parsimony::test
