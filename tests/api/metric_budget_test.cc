// The largest cut that a metric allows, and what its cuts share; requests as values.
#include "parsimony/api/metric_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model.h"
#include "tests/support/fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace parsimony::test {
namespace {

class Search : public ::testing::Test {
 protected:
  Search() {
    onnx::ModelProto model = model_of(
        "g (float[1,3,8,8] x) => (float[1,4,8,8] y)\n"
        "{ a = Conv(x, W1)\n b = Conv(a, W2)\n y = Conv(b, W3) }");
    add_weight(model, "W1", "16x3x1x1");
    add_weight(model, "W2", "16x16x1x1");
    add_weight(model, "W3", "4x16x1x1");
    write_file(folder_ / "in.onnx", model.SerializeAsString());
    request_ = from_shorthand({.criterion = "fisher", .scope = "global", .budget = "macs=90%"});
    services_.measure = [this](const Graph&, const Facts&, const Coupling& coupling, const Needs&) {
      ++measured_;
      Statistics statistics;
      statistics.samples = 1;
      for (const Group& group : coupling.groups) {
        statistics.groups.push_back(group.id);
        std::vector<double>& losses =
            statistics.channels[Measure::kFisher].emplace_back(group.size);
        for (int c = 0; c < group.size; ++c) losses[c] = 1 + c % 5;
      }
      return statistics;
    };
    search_.metric = "parameters";
    search_.measure = [](const PruneResult& small) {
      return static_cast<double>(small.small.params);
    };
  }

  TemporaryFolder folder_;
  PruneRequest request_;
  PruneServices services_;
  MetricSearch search_;
  int measured_ = 0;
};

TEST_F(Search, SharesOneAnalysis) {
  onnx_io::OnnxModel model(folder_ / "in.onnx");
  search_.bound = 180;  // of 368 parameters
  const MetricOutcome found = prune_within(model, request_, services_, search_);
  EXPECT_EQ(measured_, 1);
  ASSERT_EQ(found.trials.size(), 7U);
  double least = 1;
  for (const MetricTrial& trial : found.trials) {
    EXPECT_EQ(trial.within, *trial.value >= search_.bound) << trial.macs;
    if (trial.within) least = std::min(least, trial.macs);
  }
  EXPECT_LT(least, 1);
  EXPECT_GE(found.result.small.params, 180);

  onnx_io::OnnxModel alone(folder_ / "in.onnx");
  PruneRequest same = request_;
  same.config.entries[0].request.ratio = 1 - least;
  EXPECT_EQ(prune_model(alone, same, services_).plan, found.result.plan);
  model.write(folder_ / "found.onnx");
  alone.write(folder_ / "alone.onnx");
  EXPECT_EQ(read_file(folder_ / "found.onnx"), read_file(folder_ / "alone.onnx"));
}

TEST_F(Search, AMetricThatFailsCountsAsAMiss) {
  onnx_io::OnnxModel model(folder_ / "in.onnx");
  search_.runs = 2;
  search_.measure = [](const PruneResult&) -> double { throw ModelError("no number"); };
  EXPECT_EQ(
      message_of<ModelError>([&] { prune_within(model, request_, services_, search_); }),
      "--budget metric=…: no pruned network meets it: with 75% of the MACs parameters yields no "
      "number, expected 0");
}

TEST(MetricBudget, IsASharePointsOrAValue) {
  EXPECT_FALSE(parse_metric_budget("macs=50%"));
  EXPECT_DOUBLE_EQ(parse_metric_budget("metric=-1%")->bound(-200, false), -202);
  EXPECT_DOUBLE_EQ(parse_metric_budget("metric=-1%")->bound(200, true), 202);
  EXPECT_DOUBLE_EQ(parse_metric_budget("metric=-0.5")->bound(70, false), 69.5);
  EXPECT_DOUBLE_EQ(parse_metric_budget("metric=35")->bound(70, false), 35);
  EXPECT_THROW(parse_metric_budget("metric=5%"), ConfigError);
}

TEST(Requests, AreValues) {
  const PruneRequest request = from_shorthand({.ratio = 0.5});
  PruneRequest other = request;
  EXPECT_EQ(other, request);
  other.calibration.data = "npz:samples.npz";
  EXPECT_NE(other, request);
  other = from_shorthand({.ratio = 0.25});
  EXPECT_NE(other, request);
}

}  // namespace
}  // namespace parsimony::test
