// `prune --layers`: what it prints and writes, that its plan repeats it, what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "parsimony/base/files.h"
#include "tests/cli/command.h"
#include "tests/support/fixture.h"
#include "tests/support/residual_network.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

/// Three blocks d1, d2, d3 for images [3, 32, 32], as net.onnx.
class CliDepth : public ::testing::Test {
 protected:
  CliDepth() {
    write_file(place_ / "net.onnx",
               three_blocks("N", 32, "pads=[1,1,1,1], strides=[4,4]", 10).SerializeAsString());
  }

  /// By a component that computes nothing: the later a block, the less it does.
  Outcome fake(const std::string& arguments) const {
    return place_.run(arguments, {{"PARSIMONY_TORCH_COMPONENT", PARSIMONY_FAKE_COMPONENT}});
  }

  Workplace place_;
};

constexpr const char* kPrune = "prune net.onnx -o o.onnx --no-verify --calibration shapes:8,8 ";

TEST_F(CliDepth, SaysWhatBecameOfEachBlock) {
  const Outcome outcome =
      fake(std::string(kPrune) + "--layers 1 --ratio 0.5 --plan p.json --report r.json -v");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "1 of 3 residual blocks removed."), "") << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "d3 ").find("removed"), std::string::npos) << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "d1 ").find("kept"), std::string::npos) << outcome.out;
  const Json plan = Json::parse(place_.bytes("p.json"));
  EXPECT_EQ(plan["blocks"], Json::parse(R"([{"add": "d3", "kept_input": 1}])"));
  const Json report = Json::parse(place_.bytes("r.json"));
  ASSERT_EQ(report["depth"]["blocks"].size(), 3U);
  EXPECT_EQ(report["depth"]["blocks"][2]["removed"], true);
  EXPECT_EQ(report["depth"]["blocks"][0]["influence"], 3);
  EXPECT_EQ(report["depth"]["blocks"][0]["params"], 2 * 8 * 8 * 9);
  EXPECT_EQ(report["params"]["before"], 8 * 3 * 9 + 6 * 8 * 8 * 9 + 80);
  EXPECT_EQ(report["params"]["after"], 4 * 3 * 9 + 4 * 4 * 4 * 9 + 40);

  const Outcome applied = place_.run("apply net.onnx --plan p.json -o again.onnx");
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_TRUE(same_bytes(place_.bytes("again.onnx"), place_.bytes("o.onnx")));
}

TEST_F(CliDepth, BlocksAloneAreEnough) {
  const Outcome outcome = fake(std::string(kPrune) + "--layers 67%");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "2 of 3 residual blocks removed."), "") << outcome.out;
  EXPECT_EQ(outcome.out.find("nothing was pruned"), std::string::npos) << outcome.out;
}

TEST_F(CliDepth, ExplainListsBlocks) {
  const Outcome text = place_.run("explain net.onnx --blocks");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(lines_with(text.out, "d2 ").find("1,152"), std::string::npos) << text.out;
  const Json json = Json::parse(place_.run("explain net.onnx --blocks --json").out);
  EXPECT_EQ(json["blocks"].size(), 3U);
  const Outcome none = place_.run("explain cnn.onnx --blocks");
  EXPECT_EQ(none.out, "No residual block can be removed.\n");
}

TEST_F(CliDepth, RefusesWhatCannotBeMeant) {
  const std::pair<const char*, const char*> cases[] = {
      {"--layers 1",
       "--layers ranks blocks by their influence on data: pass --calibration DATA, for example "
       "--calibration cifar10:DIR"},
      {"--layers some --calibration shapes:8,8",
       "--layers: found \"some\", expected a number of blocks such as 3, a share of them such as "
       "25%, or auto"},
      {"--layers 4 --calibration shapes:8,8",
       "--layers 4: the network has 3 residual blocks; `parsimony explain --blocks` lists them"},
      {"--layers auto --ratio 0.5 --calibration shapes:8,8",
       "--layers auto requires a budget: pass --budget macs=50% or params=50%"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = fake(std::string("prune net.onnx -o o.onnx --no-verify ") + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.err, std::string("parsimony: ") + message + "\n");
    EXPECT_FALSE(place_.has("o.onnx")) << arguments;
  }
}

TEST_F(CliDepth, AutoFindsProvesAndRecovers) {
  if (!kHasTorch) GTEST_SKIP() << "it runs the network";
  const Outcome outcome = place_.run(
      "prune net.onnx -o o.onnx --layers auto --budget macs=50% --recover least-squares "
      "--calibration shapes:64,32 --samples 32 --threads 1 --plan p.json --report r.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Proven:"), "") << outcome.out;
  const Json report = Json::parse(place_.bytes("r.json"));
  EXPECT_LE(2 * report["macs"]["after"].get<int64_t>(), report["macs"]["before"].get<int64_t>());
  const Json& candidates = report["depth"]["candidates"];
  ASSERT_GT(candidates.size(), 1U) << outcome.out;
  const Json* best = &candidates[0];
  for (const Json& each : candidates) {
    if (each["output_error"].get<double>() < (*best)["output_error"].get<double>()) best = &each;
  }
  const Json plan = Json::parse(place_.bytes("p.json"));
  const size_t removed = plan.contains("blocks") ? plan["blocks"].size() : 0;
  EXPECT_EQ((*best)["removed"], removed) << outcome.out;
  ASSERT_EQ(place_.run("apply net.onnx --plan p.json -o again.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("again.onnx"), place_.bytes("o.onnx")));
  EXPECT_EQ(place_.run("verify net.onnx o.onnx --plan p.json").code, 0);
}

}  // namespace
}  // namespace parsimony::test
