#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

/// A folder with `attention.onnx`: two attentions that share the constant 1/sqrt(8).
class CliScales : public ::testing::Test {
 protected:
  void SetUp() override {
    place_.write("attention.onnx",
                 read_fixture("tests/operators/scale_literal.txt").model.SerializeAsString());
  }

  Outcome prune(const std::string& options) const {
    return place_.run("prune attention.onnx --granularity head_dim --ratio 0.5 " + options);
  }

  const Workplace place_;
};

TEST_F(CliScales, AreReportedAsFrozen) {
  const Outcome outcome = prune("-o o.onnx --plan p.json --report r.json -v");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "2 scales of pruned"),
            "2 scales of pruned sizes unchanged; --rescale updates them.\n")
      << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "c of t "), "") << outcome.out;
  const Json row = Json::parse(place_.bytes("r.json")).at("scales").at(0);
  EXPECT_EQ(row.at("tensor"), "c");
  EXPECT_EQ(row.at("node"), "t");
  EXPECT_EQ(row.at("encodes"), "1/sqrt(8)");
  EXPECT_EQ(row.at("size"), 8);
  EXPECT_EQ(row.at("kept"), 4);
  EXPECT_FLOAT_EQ(row.at("value").get<float>(), 0.35355338F);
  EXPECT_FLOAT_EQ(row.at("would_be").get<float>(), 0.5F);
  EXPECT_EQ(row.at("patched"), false);
  EXPECT_FALSE(Json::parse(place_.bytes("p.json")).contains("scales"));
}

TEST_F(CliScales, FollowAndAreProven) {
  const Outcome outcome = prune("-o o.onnx --plan p.json --report r.json --rescale");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "2 scales of pruned"), "2 scales of pruned sizes updated.\n");
  EXPECT_EQ(Json::parse(place_.bytes("r.json")).at("scales").at(1).at("patched"), true);
  const Json scale = Json::parse(place_.bytes("p.json")).at("scales").at(0);
  EXPECT_EQ(scale.at("encodes"), "1/sqrt(8)");
  EXPECT_EQ(scale.at("now"), "1/sqrt(4)");
  ASSERT_EQ(place_.run("apply attention.onnx --plan p.json -o again.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("again.onnx"), place_.bytes("o.onnx")));
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  EXPECT_NE(lines_with(outcome.out, "Proven: "), "") << outcome.out;
  const std::string verify = "verify attention.onnx o.onnx --plan p.json";
  EXPECT_EQ(place_.run(verify).code, 0);
  // With the scales as they were it is another network.
  Json plan = Json::parse(place_.bytes("p.json"));
  plan.erase("scales");
  place_.write("p.json", plan.dump());
  EXPECT_EQ(place_.run(verify).code, 1);
}

TEST_F(CliScales, AreExplained) {
  const Outcome text = place_.run("explain attention.onnx --granularity head_dim");
  EXPECT_NE(lines_with(text.out, "c of e1 "), "") << text.out;
  const Outcome outcome =
      place_.run("explain attention.onnx --granularity head_dim --node t --json");
  const Json rows = Json::parse(outcome.out).at("scales");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("encodes"), "1/sqrt(8)");
  EXPECT_EQ(rows[0].at("groups"), Json{"g0"});
  EXPECT_FALSE(rows[0].contains("kept"));
}

TEST_F(CliScales, DoNotFollowUnderExactConstants) {
  const Outcome outcome = prune("-o o.onnx --rescale --constants exact");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err,
            "parsimony: --rescale cannot be combined with --constants exact, which depends on the "
            "values that it changes\n");
}

}  // namespace
}  // namespace parsimony::test
