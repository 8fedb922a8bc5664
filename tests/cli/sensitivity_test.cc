#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

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

TEST(CliSensitivity, AConfigurationNeedsARatio) {
  const Outcome outcome = Workplace().run("sensitivity cnn.onnx --config-out c.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "parsimony: sensitivity: --config-out writes the proposed ratios; give --ratio too, "
            "for example --ratio 0.5\n");
}

}  // namespace
}  // namespace parsimony::test
