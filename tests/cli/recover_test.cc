// `prune --recover`: what it prints and writes, and that its plan repeats it.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "parsimony/base/files.h"
#include "tests/cli/command.h"
#include "tests/cli/images_net.h"
#include "tests/support/arrays.h"
#include "tests/support/fixture.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kData = " --calibration shapes:128,64 --samples 32 --threads 1";

/// Two convolutions and a Linear for images [3, 32, 32], as net.onnx.
class CliRecover : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "recovery runs the network";
    write_images_net(place_ / "net.onnx");
  }

  Workplace place_;
};

TEST_F(CliRecover, ThePlanRepeatsWhatWasRecovered) {
  const Outcome pruned =
      place_.run(std::string("prune net.onnx -o o.onnx --ratio 0.5 --recover bias,least-squares,bn "
                             "--plan p.json --report r.json") +
                 kData);
  ASSERT_EQ(pruned.code, 0) << pruned.err;
  const Outcome applied = place_.run("apply net.onnx --plan p.json -o again.onnx");
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_TRUE(same_bytes(place_.bytes("again.onnx"), place_.bytes("o.onnx")));
  const Outcome verified = place_.run("verify net.onnx o.onnx --plan p.json");
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
}

/// Nothing of the comparison is left in the result.
TEST_F(CliRecover, ComparedCriteriaGiveTheNetworkOfTheBest) {
  const auto pruned = [&](const std::string& criterion, const std::string& out) {
    const Outcome outcome = place_.run("prune net.onnx -o " + out + " --ratio 0.5 --criterion " +
                                       criterion + " --recover least-squares" + kData);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string said = pruned("l1,obs", "best.onnx");
  const bool obs =
      said.find("criterion obs has the smallest output error: l1 ") != std::string::npos;
  EXPECT_TRUE(obs || said.find("criterion l1 has the smallest") != std::string::npos) << said;
  pruned("l1", "l1.onnx");
  pruned("obs", "obs.onnx");
  EXPECT_TRUE(same_bytes(place_.bytes("best.onnx"), place_.bytes(obs ? "obs.onnx" : "l1.onnx")));
  EXPECT_FALSE(same_bytes(place_.bytes("best.onnx"), place_.bytes(obs ? "l1.onnx" : "obs.onnx")));
}

/// Two inputs, one of them integers, and no labels.
TEST_F(CliRecover, TakesArraysByInputName) {
  onnx::ModelProto model = model_of(R"(
    net (int64[N] token, float[N,6] x) => (float[N,4] y)
    {
      a = Gather(E, token)
      b = Gemm<transB=1>(x, W1, B1)
      c = Add(a, b)
      d = Relu(c)
      y = Gemm<transB=1>(d, W2, B2)
    })");
  for (const auto& [name, dims] :
       {std::pair("E", "9x16"), std::pair("W1", "16x6"), std::pair("B1", "16"),
        std::pair("W2", "4x16"), std::pair("B2", "4")}) {
    add_weight(model, name, dims);
  }
  save(model, place_ / "two.onnx");
  std::vector<float> x(64 * 6);
  std::vector<int32_t> tokens(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i % 9);
  write_npz(place_ / "data.npz",
            {{"x", npy("<f4", "(64, 6)", x)}, {"token", npy("<i4", "(64,)", tokens)}});
  const std::string command = "prune two.onnx -o o.onnx --ratio 0.5 --criterion mean_activation ";
  const Outcome outcome =
      place_.run(command + "--recover least-squares --calibration npz:data.npz --report r.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json recovery = Json::parse(place_.bytes("r.json")).at("recovery");
  EXPECT_EQ(recovery.at("samples"), 64);
  EXPECT_LT(recovery.at("steps").at(0).at("output_error").get<double>(),
            recovery.at("before").at("output_error").get<double>())
      << recovery;
  EXPECT_NE(outcome.out.find("over 64 calibration samples.\n"), std::string::npos) << outcome.out;
  EXPECT_EQ(place_.run(command + "--recover finetune --calibration npz:data.npz").err,
            "parsimony: --recover finetune requires a data set with classes and a network with one "
            "input; for other labels pass --loss, for example --loss cross_entropy\n");

  std::vector<float> y(64 * 4);
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i / 4 * 6 + i % 4];
  write_npz(place_ / "taught.npz", {{"x", npy("<f4", "(64, 6)", x)},
                                    {"token", npy("<i4", "(64,)", tokens)},
                                    {"y", npy("<f4", "(64, 4)", y)}});
  const std::string taught = " --loss y=huber:delta=2 --calibration npz:taught.npz --threads 1";
  const Outcome pruned = place_.run(
      "prune two.onnx -o o.onnx --ratio 0.5 --criterion fisher --recover finetune "
      "--recover-epochs 8 --recover-lr 0.05 --report r.json" +
      taught);
  ASSERT_EQ(pruned.code, 0) << pruned.err;
  const Json report = Json::parse(place_.bytes("r.json")).at("recovery");
  EXPECT_LT(report.at("steps").at(0).at("loss").get<double>(),
            0.8 * report.at("before").at("loss").get<double>())
      << report;
  const Outcome tuned =
      place_.run("finetune o.onnx -o t.onnx --epochs 8 --lr 0.05 --report t.json" + taught);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Json further = Json::parse(place_.bytes("t.json"));
  EXPECT_LT(further.at("steps").at(0).at("loss").get<double>(),
            report.at("steps").at(0).at("loss").get<double>());
  EXPECT_NE(tuned.out.find("  loss  "), std::string::npos) << tuned.out;
  EXPECT_EQ(place_
                .run("prune two.onnx -o o.onnx --ratio 0.5 --criterion fisher --loss mse "
                     "--calibration npz:data.npz")
                .err,
            "parsimony: loss: the data has no targets for the output \"y\"; add an array of that "
            "name with as many samples as the inputs\n");
  EXPECT_EQ(place_.run("finetune o.onnx -o t.onnx --loss hubre --calibration npz:taught.npz").code,
            2);
}

TEST_F(CliRecover, SaysWhatEachStepBrought) {
  const Outcome outcome = place_.run(
      std::string("prune net.onnx -o o.onnx --ratio 0.5 --recover bias,least-squares,finetune "
                  "--recover-epochs 1 --report r.json") +
      kData);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* row : {"dense ", "pruned ", "+ bias ", "+ least-squares ", "+ finetune "}) {
    EXPECT_NE(lines_with(outcome.out, row), "") << outcome.out;
  }
  const Json recovery = Json::parse(place_.bytes("r.json"))["recovery"];
  EXPECT_EQ(recovery["samples"], 32);
  EXPECT_EQ(recovery["test_samples"], 64);
  ASSERT_EQ(recovery["steps"].size(), 3U);
  EXPECT_EQ(recovery["steps"][1]["method"], "least-squares");
  const double before = recovery["before"]["output_error"];
  const double bias = recovery["steps"][0]["output_error"];
  const double fitted = recovery["steps"][1]["output_error"];
  EXPECT_LT(bias, before);
  EXPECT_LT(fitted, bias);
  const Json& fits = recovery["steps"][1]["fits"];
  ASSERT_FALSE(fits.empty());
  EXPECT_FALSE(recovery["steps"][2].contains("fits"));
  for (const Json& fit : fits) {
    const bool worse = fit["error_after"].get<double>() >= fit["error_before"].get<double>();
    EXPECT_EQ(fit["kept"], worse) << fit;
    EXPECT_GE(fit["ridge"].get<double>(), 1e-4);
    EXPECT_NE(outcome.out.find("\n" + fit["layer"].get<std::string>() + " "), std::string::npos)
        << outcome.out;
  }
  EXPECT_NE(outcome.out.find("Fits of least-squares; errors are on held-out samples"),
            std::string::npos)
      << outcome.out;
}

/// A hundred inputs of the last layer, and few samples: with a ridge that is given, too.
TEST_F(CliRecover, SaysWhichLayersKeepTheirWeights) {
  onnx::ModelProto model = model_of(
      "net (float[N,100] x) => (float[N,8] y) { a = Gemm<transB=1>(x, W1) b = Tanh(a) "
      "y = Gemm<transB=1>(b, W2) }");
  add_weight(model, "W1", "100x100");
  add_weight(model, "W2", "8x100");
  write_file(place_ / "wide.onnx", model.SerializeAsString());
  const Outcome outcome = place_.run(
      "prune wide.onnx -o o.onnx --ratio 0.5 --recover least-squares --ridge 1e-6 "
      "--calibration random:64 --samples 30 --report r.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json step = Json::parse(place_.bytes("r.json"))["recovery"]["steps"][0];
  EXPECT_EQ(step["layers"], 0);
  ASSERT_EQ(step["fits"].size(), 1U);
  EXPECT_EQ(step["fits"][0]["kept"], true);
  EXPECT_EQ(step["fits"][0]["ridge"], 1e-6);
  EXPECT_NE(outcome.out.find("kept: worse on held-out samples"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("no fit reduced the error on held-out samples"), std::string::npos)
      << outcome.out;
}

TEST_F(CliRecover, AConfigNamesStepsAndData) {
  place_.write("c.json",
               R"({"recover": ["least-squares"], "calibration": {"data": "shapes:64,32",
                   "samples": 16}, "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]})");
  const Outcome outcome = place_.run("prune net.onnx -o o.onnx --config c.json --threads 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "+ least-squares"), "") << outcome.out;
  EXPECT_NE(outcome.out.find("16 calibration samples"), std::string::npos) << outcome.out;
}

TEST_F(CliRecover, KeepsThePatternOfSingleElements) {
  const auto zeros_of = [&](const std::string& file) {
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(place_.bytes(file)));
    std::map<std::string, std::vector<bool>> zeros;
    for (const auto& tensor : model.graph().initializer()) {
      if (tensor.dims_size() < 2) continue;
      std::vector<float> values(tensor.raw_data().size() / sizeof(float));
      std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
      for (const float value : values) zeros[tensor.name()].push_back(value == 0);
    }
    return zeros;
  };
  const std::string prune = "prune net.onnx -o o.onnx";
  for (const std::string criterion : {"2:4", "wanda_elements"}) {
    const std::string asked = prune + " --ratio 0.5 --criterion " + criterion + kData;
    ASSERT_EQ(place_.run(asked).code, 0);
    const auto before = zeros_of("o.onnx");
    EXPECT_FALSE(before.empty());
    for (const std::string step : {"bias,least-squares", "outputs", "finetune"}) {
      const Outcome done = place_.run(asked + " --in-place --recover-epochs 1 --recover " + step);
      ASSERT_EQ(done.code, 0) << done.err;
      EXPECT_EQ(zeros_of("o.onnx"), before) << criterion << ", " << step;
      EXPECT_EQ(done.out.find("recover bias leaves"), std::string::npos) << done.out;
    }
  }
}

TEST_F(CliRecover, StartsFromFoldedConstants) {
  const Outcome outcome = place_.run(
      std::string("prune net.onnx -o o.onnx --ratio 0.5 --constants exact --recover least-squares "
                  "--plan p.json --report r.json") +
      kData);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Proven"), std::string::npos) << outcome.out;
  const Json recovery = Json::parse(place_.bytes("r.json"))["recovery"];
  EXPECT_LT(recovery["steps"][0]["output_error"].get<double>(),
            0.8 * recovery["before"]["output_error"].get<double>());
  ASSERT_EQ(place_.run("apply net.onnx --plan p.json -o again.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("again.onnx"), place_.bytes("o.onnx")));
}

TEST_F(CliRecover, RefusesWhatCannotBeMeant) {
  const Outcome no_data = place_.run("prune net.onnx -o o.onnx --ratio 0.5 --recover bias");
  EXPECT_EQ(no_data.code, 2);
  EXPECT_EQ(no_data.err,
            "parsimony: --recover requires calibration data: pass --calibration DATA, for example "
            "--calibration cifar10:DIR\n");
  const Outcome unknown =
      place_.run(std::string("prune net.onnx -o o.onnx --ratio 0.5 --recover bais") + kData);
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("unknown recovery \"bais\""), std::string::npos) << unknown.err;
  const Outcome both = place_.run(
      "prune net.onnx -o o.onnx --ratio 0.5 --recover finetune --recover-recipe r.json "
      "--loss huber --calibration npz:data.npz");
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(both.err,
            "parsimony: --recover-recipe requires labels; with --loss pass --recover-epochs, "
            "--recover-lr and --recover-minutes. See `parsimony prune --help`.\n");
}

TEST_F(CliRecover, OutputsOfTheDenseNetworkTeachWithoutLabels) {
  const char* data = " --calibration random:64 --samples 48 --threads 1";
  const Outcome pruned = place_.run(
      "prune net.onnx -o small.onnx --ratio 0.3 --report r.json --recover outputs "
      "--recover-epochs 4 --recover-lr 0.01 --match d=0.5" +
      std::string(data));
  ASSERT_EQ(pruned.code, 0) << pruned.err;
  const Json report = Json::parse(place_.bytes("r.json")).at("recovery");
  EXPECT_EQ(report.at("test_samples"), 16);
  const double before = report.at("before").at("test_error");
  EXPECT_LT(report.at("steps")[0].at("test_error"), before);

  ASSERT_EQ(place_.run("prune net.onnx -o plain.onnx --ratio 0.3").code, 0);
  const Outcome tuned = place_.run(
      "finetune plain.onnx -o tuned.onnx --teacher net.onnx --loss outputs --epochs 4 --lr 0.01 "
      "--report t.json" +
      std::string(data));
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.err.find("epoch 4 of 4"), std::string::npos) << tuned.err;
  const Json other = Json::parse(place_.bytes("t.json"));
  EXPECT_NEAR(other.at("before").at("test_error"), before, 1e-6);
  EXPECT_LT(other.at("steps")[0].at("test_error"), before);
  EXPECT_FALSE(same_bytes(place_.bytes("tuned.onnx"), place_.bytes("plain.onnx")));
}

TEST_F(CliRecover, OutputsThatCannotTeachAreNamed) {
  const std::string data = " --calibration random:8 --threads 1";
  EXPECT_EQ(
      place_.run("finetune net.onnx -o t.onnx --loss outputs" + data).err,
      "parsimony: --loss outputs requires --teacher MODEL. See `parsimony finetune --help`.\n");
  EXPECT_EQ(place_.run("finetune net.onnx -o t.onnx --loss mse --teacher net.onnx" + data).err,
            "parsimony: --teacher and --match require --loss outputs. See `parsimony finetune "
            "--help`.\n");
  EXPECT_EQ(place_.run("finetune net.onnx -o t.onnx --data shapes" + data).err,
            "parsimony: --calibration, --image, --states, --input, --match and --minutes require "
            "--loss outputs or a loss of arrays. See `parsimony finetune --help`.\n");
  EXPECT_EQ(place_.run("finetune net.onnx -o t.onnx --loss outputs --data shapes" + data).err,
            "parsimony: --loss outputs cannot be combined with --data, --checkpoint, --profile and "
            "--tensorboard. "
            "See `parsimony finetune --help`.\n");
  EXPECT_EQ(
      place_.run("prune net.onnx -o s.onnx --ratio 0.3 --recover outputs --match no" + data).err,
      "parsimony: --match \"no\": the pruned network computes no value of that name; prune --html "
      "shows them\n");
  EXPECT_FALSE(place_.has("s.onnx"));
}

}  // namespace
}  // namespace parsimony::test
