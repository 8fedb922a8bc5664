// Every criterion against numbers computed by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/statistics.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using State = LayerSetting::State;

using test::Builder;
using test::group_of;
using test::member;

constexpr double kTolerance = 1e-9;

void expect_scores(const Scores& found, const Scores& requested) {
  ASSERT_EQ(found.size(), requested.size());
  for (size_t c = 0; c < requested.size(); ++c)
    EXPECT_NEAR(found[c], requested[c], kTolerance) << c;
}

/// conv1 [3 filters of 2], BatchNormalization, conv2 [2, 3].
struct TwoLayers {
  Builder b;
  Group group;
  Group plain;  ///< its second group, without a normalisation
  Statistics statistics;

  TwoLayers() {
    const ValueId x = b.input("x", {1, 2, 1, 1});
    const ValueId w1 = b.weight<float>("w1", {3, -4, 0, 1, 3, -4}, {3, 2, 1, 1}, DType::kFloat32);
    const ValueId gamma = b.weight<float>("gamma", {2, -1, 0.5F}, {3}, DType::kFloat32);
    const ValueId beta = b.weight<float>("beta", {1, 0, 0}, {3}, DType::kFloat32);
    const ValueId mean = b.weight<float>("mean", {9, 9, 9}, {3}, DType::kFloat32);
    const ValueId var = b.weight<float>("var", {7, 7, 7}, {3}, DType::kFloat32);
    const ValueId w2 = b.weight<float>("w2", {1, 2, -3, -1, 0, 4}, {2, 3, 1, 1}, DType::kFloat32);
    const ValueId a = b.node("Conv", {x, w1}, "conv1");
    const ValueId n = b.node("BatchNormalization", {a, gamma, beta, mean, var}, "bn");
    b.node("Conv", {n, w2}, "conv2");
    group = group_of(
        {member(w1, 0, 0, 3), member(gamma, 1, 0, 3), member(beta, 1, 0, 3), member(mean, 1, 0, 3),
         member(var, 1, 0, 3, Role::kWith), member(w2, 2, 1, 3, Role::kIn)},
        3);
    plain = group_of({member(w2, 2, 0, 2)}, 2, "g1");
    statistics.groups = {"g0", "g1"};
  }

  Scores score(std::string_view criterion) const {
    return find_criterion(criterion).score(b.graph, group, {.seed = 0, .statistics = &statistics});
  }
};

TEST(Criteria, LInfIsTheLargestMagnitude) { expect_scores(TwoLayers().score("linf"), {4, 1, 4}); }

TEST(Criteria, FpgmIsTheSumOfDistancesToTheOthers) {
  const double far = std::sqrt(9.0 + 25.0);  // between (3, -4) and (0, 1)
  expect_scores(TwoLayers().score("fpgm"), {far, 2 * far, far});
}

TEST(Criteria, FpgmDoesNotMindWhatAllHaveInCommon) {
  Builder b;
  const ValueId w = b.weight<float>("w", {101, 100, 103, 100, 104, 100}, {3, 2}, DType::kFloat32);
  b.node("Gemm", {b.input("x", {1, 3}), w}, "y");
  const Group group = group_of({member(w, 0, 0, 3)}, 3);
  const Scores scores = find_criterion("fpgm").score(b.graph, group, {});
  for (const auto& [c, requested] : {std::pair<size_t, double>{0, 5}, {1, 3}, {2, 4}}) {
    EXPECT_NEAR(scores[c], requested, 1e-5);
  }
}

TEST(Criteria, LampDividesByWhatIsAsLarge) {
  // Squares 25, 1, 25: the two largest share their sum, the smallest is 1 of 51.
  expect_scores(TwoLayers().score("lamp"), {0.5, 1.0 / 51, 0.5});
}

TEST(Criteria, LampOfALayerOfZeros) {
  Builder b;
  const ValueId w = b.weight<float>("w", {0, 0}, {2, 1}, DType::kFloat32);
  b.node("Gemm", {b.input("x", {1, 2}), w}, "y");
  expect_scores(find_criterion("lamp").score(b.graph, group_of({member(w, 0, 0, 2)}, 2), {}),
                {0, 0});
}

TEST(Criteria, BnScaleIsThatOfTheGroupsNormalisation) {
  const TwoLayers net;
  expect_scores(net.score("bn_scale"), {2, 1, 0.5});
  EXPECT_TRUE(find_criterion("bn_scale").score(net.b.graph, net.plain, {}).empty());
}

TEST(Criteria, GroupNormCountsAllParameters) {
  // w1, gamma, beta and w2's columns: 25+4+1+2, 1+1+0+4, 25+0.25+0+25; not mean and variance.
  const double mean = (32 + 6 + 50.25) / 3;
  expect_scores(TwoLayers().score("group_norm"), {32 / mean, 6 / mean, 50.25 / mean});
}

struct Reads {
  const char* criterion;
  Measure measure;
  Scores requested;
};

class Measured : public ::testing::TestWithParam<Reads> {};

TEST_P(Measured, ReadsItsOwnMeasureOfItsOwnGroup) {
  TwoLayers net;
  net.statistics.channels[GetParam().measure] = {{0.25, 0.5, 0.125}, {9, 9}};
  EXPECT_EQ(find_criterion(GetParam().criterion).measure, GetParam().measure);
  expect_scores(net.score(GetParam().criterion), GetParam().requested);
}

TEST_P(Measured, HasNothingToSayWhereDataDidNotGo) {
  TwoLayers net;
  net.statistics.channels[GetParam().measure] = {{}, {9, 9}};
  EXPECT_TRUE(net.score(GetParam().criterion).empty());
}

TEST_P(Measured, AsksForData) {
  const TwoLayers net;
  try {
    find_criterion(GetParam().criterion).score(net.b.graph, net.group, {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(
        error.what(),
        "criterion \"" + std::string(GetParam().criterion) +
            "\" needs data that runs through the network, and there is none: give --calibration "
            "DATA, for example --calibration cifar10:DIR; in a program, PruneServices::measure");
  }
}

TEST(Criteria, ReapIsWhatAnExpertAddsToAToken) {
  TwoLayers net;
  net.group.granularity = "expert";
  net.statistics.channels[Measure::kContribution] = {{3, 0, 1}, {}};
  net.statistics.channels[Measure::kRouted] = {{4, 0, 0.5}, {}};
  expect_scores(net.score("reap"), {0.75, 0, 2});
}

TEST(Criteria, ReapScoresExpertsThatWereMeasured) {
  TwoLayers net;
  const auto refusal = [&] {
    try {
      net.score("reap");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      refusal(),
      "criterion \"reap\" scores experts, and the channels of \"conv1\" are none: use it with "
      "granularity expert");
  net.group.granularity = "expert";
  net.group.mixes_at = "topk";
  EXPECT_TRUE(net.score("reap").empty());
  net.statistics.unmeasured["g0"] = "for a reason";
  EXPECT_EQ(refusal(), "criterion \"reap\" cannot measure the experts at \"topk\": for a reason");
}

INSTANTIATE_TEST_SUITE_P(
    All, Measured,
    ::testing::Values(Reads{"apoz", Measure::kZeroShare, {0.75, 0.5, 0.875}},
                      Reads{"mean_activation", Measure::kMeanActivation, {0.25, 0.5, 0.125}},
                      Reads{
                          "mean_activation_rank", Measure::kMeanActivation, {1.0 / 3, 2.0 / 3, 0}},
                      // Columns of w2 have the norms 2, 2 and 7.
                      Reads{"wanda", Measure::kActivationNorm, {0.5, 1, 0.875}},
                      Reads{"hrank", Measure::kRank, {0.25, 0.5, 0.125}},
                      Reads{"taylor", Measure::kTaylor, {0.25, 0.5, 0.125}},
                      Reads{"taylor_squared", Measure::kTaylorSquared, {0.25, 0.5, 0.125}},
                      Reads{"fisher", Measure::kFisher, {0.25, 0.5, 0.125}},
                      Reads{"obd", Measure::kHessian, {0.25, 0.5, 0.125}}),
    [](const auto& test) { return std::string(test.param.criterion); });

TEST(Criteria, NeedsAreThoseOfTheLayersThatArePruned) {
  Settings settings;
  settings.requests = {{.criterion = "taylor"}, {.criterion = "apoz"}, {.criterion = "l1"}};
  settings.layers.resize(3);
  settings.layers[NodeId(0)].state = settings.layers[NodeId(2)].state = State::kPruned;
  settings.layers[NodeId(1)].state = State::kExcluded;
  settings.layers[NodeId(0)].request = 2;
  settings.layers[NodeId(1)].request = 1;
  settings.layers[NodeId(2)].request = 0;
  const Needs needs = needs_of(settings);
  EXPECT_EQ(needs.channels, std::set<Measure>{Measure::kTaylor});
  EXPECT_EQ(needs.criteria, std::set<std::string>{"taylor"});
  settings.layers[NodeId(2)].request = 2;
  EXPECT_TRUE(needs_of(settings).empty());
}

}  // namespace
}  // namespace parsimony
