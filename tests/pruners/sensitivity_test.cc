#include <gtest/gtest.h>

#include "parsimony/pruners/importance.h"

namespace parsimony {
namespace {

SensitivityCurve curve(int size, std::vector<double> errors) {
  return {size, {0.2, 0.4, 0.8}, std::move(errors)};
}

TEST(SensitivityCurve, IsLinearBetweenItsPoints) {
  const SensitivityCurve c = curve(10, {0.1, 0.3, 0.5});
  EXPECT_DOUBLE_EQ(c.ratio_at(0), 0);
  EXPECT_DOUBLE_EQ(c.ratio_at(0.05), 0.1);
  EXPECT_DOUBLE_EQ(c.ratio_at(0.1), 0.2);
  EXPECT_DOUBLE_EQ(c.ratio_at(0.2), 0.3);
  EXPECT_DOUBLE_EQ(c.ratio_at(0.4), 0.6);
  EXPECT_DOUBLE_EQ(c.ratio_at(9), 0.8);
}

TEST(SensitivityCurve, DoesNotTrustAnErrorThatFalls) {
  const SensitivityCurve c = curve(10, {0.4, 0.1, 0.5});
  EXPECT_DOUBLE_EQ(c.ratio_at(0.2), 0.1);
  EXPECT_DOUBLE_EQ(c.ratio_at(0.4), 0.4);
}

TEST(SensitivityCurve, StartsWhereNothingIsLost) {
  EXPECT_DOUBLE_EQ(curve(10, {0, 0, 0.5}).ratio_at(0), 0.4);
  EXPECT_DOUBLE_EQ(SensitivityCurve{}.ratio_at(1), 0);
}

TEST(ProposeRatios, EqualsTheErrorAndReachesTheRatio) {
  // At level e the first loses 2e, the second e: (2e · 10 + e · 30) / 40 = 0.2 where e = 0.16.
  const std::vector<SensitivityCurve> curves = {{10, {0.5}, {0.25}}, {30, {0.5}, {0.5}}};
  const RatioProposal proposal = propose_ratios(curves, 0.2);
  EXPECT_NEAR(proposal.level, 0.16, 1e-9);
  EXPECT_NEAR(proposal.reached, 0.2, 1e-9);
  EXPECT_NEAR(proposal.ratios[0], 0.32, 1e-9);
  EXPECT_NEAR(proposal.ratios[1], 0.16, 1e-9);
}

TEST(ProposeRatios, GivesWhatThereIsWhereItIsNotEnough) {
  const std::vector<SensitivityCurve> curves = {curve(10, {0.1, 0.2, 0.3}),
                                                curve(10, {0.1, 0.2, 0.9})};
  const RatioProposal proposal = propose_ratios(curves, 0.95);
  EXPECT_DOUBLE_EQ(proposal.reached, 0.8);
  EXPECT_DOUBLE_EQ(proposal.level, 0.9);
}

TEST(ProposeRatios, TakesWhatCostsNothingFirst) {
  const std::vector<SensitivityCurve> curves = {curve(10, {0, 0, 0}), curve(10, {0.1, 0.2, 0.3})};
  const RatioProposal proposal = propose_ratios(curves, 0.4);
  EXPECT_EQ(proposal.level, 0);
  EXPECT_EQ(proposal.ratios, (std::vector<double>{0.8, 0}));
}

TEST(ProposeRatios, OfNothingIsNothing) {
  EXPECT_TRUE(propose_ratios({}, 0.5).ratios.empty());
  EXPECT_EQ(propose_ratios({}, 0.5).reached, 0);
}

}  // namespace
}  // namespace parsimony
