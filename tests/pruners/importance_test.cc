#include "parsimony/pruners/importance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace parsimony {
namespace {

Candidate candidate(const Scores& scores) {
  const auto size = static_cast<int>(scores.size());
  return {limits_of({}, size), scores, removal_order(scores), 1, 0, 0};
}

TEST(Shares, OfScoresAreThoseOfTheBestChannels) {
  EXPECT_EQ(score_curve(candidate({1, 5, 2})), (std::vector<double>{0, 0.625, 0.875, 1}));
  EXPECT_EQ(score_curve(candidate({0, 0, 0})), (std::vector<double>{0, 1.0 / 3, 2.0 / 3, 1}))
      << "all alike";
}

TEST(Shares, AreInterpolatedAndNeverFall) {
  const std::vector<std::pair<int, double>> known = {{2, 0.5}, {3, 0.25}, {5, 0.75}};
  EXPECT_EQ(interpolated_curve(6, known), (std::vector<double>{0, 0.25, 0.5, 0.5, 0.625, 0.75, 1}));
  EXPECT_EQ(interpolated_curve(2, {}), (std::vector<double>{0, 0.5, 1}));
}

TEST(ImportanceScores, AreSlopesOfTheHullByRemovalOrder) {
  const Candidate channels = candidate({3, 1, 2, 4});
  // Losses without 0, 1, 2, 3 channels: 0, 2, 2, 6 in units of ln 2: the second goes free of
  // charge.
  const std::vector<double> curve = {0, 1.0 / 64, 0.25, 0.25, 1};
  const std::vector<double> scores = importance_scores(channels, curve, 0.5);
  const double unit = std::log(2) / 0.5;
  EXPECT_NEAR(scores[1], unit, 1e-12) << "the first two together, 2 for both";
  EXPECT_NEAR(scores[2], unit, 1e-12);
  EXPECT_NEAR(scores[0], 4 * unit, 1e-12);
  EXPECT_NEAR(scores[3], (std::log(1e6) - 6 * std::log(2)) / 0.5, 1e-9) << "all gone";
}

TEST(ImportanceScores, CountWhatAChannelSaves) {
  const Candidate channels = candidate({1, 2});
  const std::vector<double> curve = {0, 0.5, 1};
  const std::vector<double> cheap = importance_scores(channels, curve, 1);
  const std::vector<double> dear = importance_scores(channels, curve, 4);
  EXPECT_DOUBLE_EQ(cheap[0], 4 * dear[0]);
}

TEST(KeepBest, MarksTheOthersAsGone) {
  std::vector<uint8_t> keep(3, 1);
  keep_best(candidate({1, 5, 2}), 2, keep);
  EXPECT_EQ(keep, (std::vector<uint8_t>{0, 1, 1}));
}

}  // namespace
}  // namespace parsimony
