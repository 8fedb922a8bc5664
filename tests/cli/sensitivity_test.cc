#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "parsimony/base/files.h"
#include "tests/cli/command.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

/// Two convolutions and a Linear, for [n, 3, 32, 32] and ten classes.
void write_classifier(const std::string& path) {
  onnx::ModelProto model = model_of(R"(
    net (float[N,3,32,32] x) => (float[N,10] y)
    {
      a = Conv<strides=[4,4]>(x, W1)
      b = Relu(a)
      c = Conv<strides=[2,2]>(b, W2)
      d = Relu(c)
      e = GlobalAveragePool(d)
      f = Flatten(e)
      y = Gemm<transB=1>(f, W3)
    })");
  add_weight(model, "W1", "8x3x3x3");
  add_weight(model, "W2", "12x8x3x3");
  add_weight(model, "W3", "10x12");
  write_file(path, model.SerializeAsString());
}

TEST(CliOutputs, SpreadABudgetByWhatTheyLose) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Workplace place;
  write_classifier(place / "net.onnx");
  for (const char* data : {"", " --calibration shapes:64,32 --samples 32"}) {
    const Outcome outcome = place.run(
        "prune net.onnx -o s.onnx --budget macs=60% --scope outputs --threads 1 --report r.json" +
        std::string(data));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find("is ranked last"), std::string::npos) << outcome.out;
    const Json macs = Json::parse(place.bytes("r.json")).at("macs");
    EXPECT_LE(macs.at("after"), 0.6 * macs.at("before").get<double>());
    EXPECT_GT(macs.at("after"), 0.4 * macs.at("before").get<double>());
  }
}

TEST(CliSensitivity, ItsProposalIsAConfiguration) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Workplace place;
  const Outcome outcome = place.run(
      "sensitivity cnn.onnx --ratio 0.5 --samples 2 --json s.json --config-out c.json --threads 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("group  size  ")) << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "Numbers are the output error on 2 samples of random inputs"),
            "");
  const Json report = Json::parse(place.bytes("s.json"));
  ASSERT_EQ(report.at("groups").size(), 2U);
  for (const Json& group : report.at("groups")) {
    EXPECT_EQ(group.at("ratios").size(), 9U);
    EXPECT_GT(group.at("errors").at(8), 0) << "nine tenths of a layer are missed";
    EXPECT_GE(group.at("errors").at(8), group.at("errors").at(0));
  }
  // More than asked for only where a curve is flat.
  EXPECT_GE(report.at("proposal").at("reached"), 0.5 - 1e-9);
  EXPECT_LE(report.at("proposal").at("reached"), 0.7);
  const Outcome pruned = place.run("prune cnn.onnx -o o.onnx --config c.json --report r.json");
  ASSERT_EQ(pruned.code, 0) << pruned.err;
  int kept = 0;
  const Json groups = Json::parse(place.bytes("r.json")).at("groups");
  for (const Json& group : groups) kept += group.at("kept").get<int>();
  // Of 14 channels half go, but for what rounding down in either group leaves.
  const double left = 14 * (1 - report.at("proposal").at("reached").get<double>());
  EXPECT_GE(kept, left - 1e-6);
  EXPECT_LE(kept, left + 2);
}

TEST(CliSensitivity, CountsAccuracyOnLabelledData) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Workplace place;
  write_classifier(place / "net.onnx");
  const Outcome outcome = place.run(
      "sensitivity net.onnx --calibration shapes:96,8 --samples 80 --criterion taylor --ratio 0.5 "
      "--json s.json --threads 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Numbers are the accuracy lost on 80 samples of shapes"), "")
      << outcome.out;
  const Json report = Json::parse(place.bytes("s.json"));
  EXPECT_EQ(report.at("samples"), 80);
  const auto accuracy = report.at("accuracy").get<double>();
  EXPECT_NEAR(accuracy * 80, std::round(accuracy * 80), 1e-9);
  for (const Json& group : report.at("groups")) {
    for (const Json& lost : group.at("errors")) EXPECT_LE(lost.get<double>(), accuracy + 1e-12);
  }
}

/// Without libtorch.
class OnOnnxRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_onnx_runtime()) GTEST_SKIP() << "no ONNX Runtime here";
    write_classifier(place_ / "net.onnx");
  }

  Outcome run(const std::string& arguments) const {
    return place_.run(arguments, {{"PARSIMONY_TORCH_COMPONENT", place_ / "none.so"},
                                  {"PARSIMONY_ONNXRUNTIME", onnx_runtime()}});
  }

  Workplace place_;
};

TEST_F(OnOnnxRuntime, DataRunForCriteriaAndRecovery) {
  const Outcome outcome =
      run("prune net.onnx -o s.onnx --ratio 0.5 --criterion apoz --calibration random:48 "
          "--samples 32 --recover least-squares --report r.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json recovery = Json::parse(place_.bytes("r.json")).at("recovery");
  ASSERT_EQ(recovery.at("steps").size(), 1U);
  EXPECT_EQ(recovery.at("samples"), 32);
  EXPECT_EQ(recovery.at("test_samples"), 16);
  for (const char* error : {"output_error", "test_error"}) {
    EXPECT_LT(recovery.at("steps").front().at(error), recovery.at("before").at(error)) << error;
  }
}

TEST_F(OnOnnxRuntime, CutsAreCompared) {
  const Outcome outcome = run("sensitivity net.onnx --calibration random:32 --json s.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json groups = Json::parse(place_.bytes("s.json")).at("groups");
  ASSERT_EQ(groups.size(), 2U);
  for (const Json& group : groups) {
    EXPECT_GT(group.at("errors").back(), group.at("errors").front());
  }
  const Outcome spread = run("prune net.onnx -o s.onnx --budget macs=60% --scope outputs");
  EXPECT_EQ(spread.code, 0) << spread.err;
}

TEST_F(OnOnnxRuntime, DataRunThroughProgramsOfTorchExport) {
  const std::string program = "tests/exported/tiny_image.2.14.pt2";
  for (const char* options : {"--criterion wanda", "--criterion hrank --recover bn",
                              "--recover bias,least-squares", "--scope outputs"}) {
    const Outcome outcome =
        run("prune " + std::filesystem::absolute(program).string() +
            " -o s.pt2 --ratio 0.5 --calibration random:48 --samples 32 " + options);
    EXPECT_EQ(outcome.code, 0) << options << outcome.err;
    EXPECT_NE(outcome.out.find("Proven: "), std::string::npos) << options << outcome.out;
  }
  const Outcome curves =
      run("sensitivity " + std::filesystem::absolute(program).string() + " --json s.json");
  ASSERT_EQ(curves.code, 0) << curves.err;
  for (const Json& group : Json::parse(place_.bytes("s.json")).at("groups")) {
    EXPECT_GT(group.at("errors").back(), group.at("errors").front());
  }
}

TEST_F(OnOnnxRuntime, WhatOnlyLibtorchCanDoSaysSo) {
  const std::pair<const char*, const char*> cases[] = {
      {"--criterion fisher --calibration random:32", "a gradient-based criterion"},
      {"--criterion apoz --calibration random:32 --device cuda", "--device cuda"},
      {"--recover outputs --calibration random:32", "--recover outputs"},
  };
  for (const auto& [options, what] : cases) {
    const Outcome outcome = run(std::string("prune net.onnx -o s.onnx --ratio 0.5 ") + options);
    EXPECT_EQ(outcome.code, 3) << options;
    EXPECT_EQ(outcome.err.find(std::string("parsimony: ") + what + " requires libtorch"), 0U)
        << outcome.err;
  }
}

TEST(CliSensitivity, AConfigurationNeedsARatio) {
  const Outcome outcome = Workplace().run("sensitivity cnn.onnx --config-out c.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "parsimony: sensitivity: --config-out requires --ratio, for example --ratio 0.5\n");
}

}  // namespace
}  // namespace parsimony::test
