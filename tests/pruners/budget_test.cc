#include "parsimony/pruners/budget.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace parsimony {
namespace {

using Removed = std::vector<int>;

Request request(double ratio, Scope scope = Scope::kLocal, Budget budget = Budget::kChannels) {
  Request result;
  result.ratio = ratio;
  result.scope = scope;
  result.budget = budget;
  return result;
}

Candidate candidate(const Request& asked, const Scores& scores) {
  return {limits_of(asked, static_cast<int>(scores.size())), scores, removal_order(scores)};
}

int removed(const Request& asked, int size, int wanted) {
  return limits_of(asked, size).removed(wanted);
}

TEST(Limits, KeepAtLeastOne) {
  EXPECT_EQ(removed(request(0.99), 8, 8), 7);
  EXPECT_EQ(removed(request(0.99), 1, 1), 0);
}

TEST(Limits, HoldMinAndMaxRatio) {
  Request asked = request(0.5);
  asked.min_ratio = 0.25;
  asked.max_ratio = 0.6;
  EXPECT_EQ(removed(asked, 10, 0), 3);
  EXPECT_EQ(removed(asked, 10, 5), 5);
  EXPECT_EQ(removed(asked, 10, 9), 6);
}

TEST(Limits, RoundUpWhatStays) {
  Request asked = request(0.5);
  asked.round_to = 8;
  EXPECT_EQ(removed(asked, 64, 32), 32);
  EXPECT_EQ(removed(asked, 64, 33), 32);
  EXPECT_EQ(removed(asked, 20, 3), 0);  // 17 would stay, 24 are not there
  EXPECT_EQ(removed(asked, 20, 4), 4);
  EXPECT_EQ(removed(asked, 6, 5), 0);
}

TEST(RemovalOrder, TiesFallToTheHigherIndex) {
  EXPECT_EQ(removal_order({2, 1, 2, 1}), (Removed{3, 1, 2, 0}));
}

TEST(Normalised, DividesByTheMean) {
  EXPECT_EQ(normalised({1, 3}), (Scores{0.5, 1.5}));
  EXPECT_EQ(normalised({0, 0}), (Scores{0, 0}));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(normalised({1, inf}), (Scores{0, inf}));
}

TEST(LocalChannels, RoundDown) {
  const Request asked = request(0.29);
  const std::vector<Candidate> candidates = {candidate(asked, Scores(100)),
                                             candidate(asked, Scores(3))};
  const Counts counts = choose_counts(asked, candidates, {});
  EXPECT_EQ(counts.removed, (Removed{29, 0}));
  EXPECT_TRUE(counts.feasible);
}

TEST(GlobalChannels, TakeTheLowestOfAll) {
  const Request asked = request(0.5, Scope::kGlobal);
  const std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 10}),
                                             candidate(asked, {9, 8, 7, 6})};
  EXPECT_EQ(choose_counts(asked, candidates, {}).removed, (Removed{3, 1}));
}

TEST(GlobalChannels, PassOverGroupsThatAreAtTheirLimit) {
  Request asked = request(0.5, Scope::kGlobal);
  asked.max_ratio = 0.5;
  const std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 10}),
                                             candidate(asked, {9, 8, 7, 6})};
  EXPECT_EQ(choose_counts(asked, candidates, {}).removed, (Removed{2, 2}));
  asked.ratio = 0.9;
  const Counts short_of = choose_counts(asked, candidates, {});
  EXPECT_FALSE(short_of.feasible);
  EXPECT_DOUBLE_EQ(short_of.reached, 0.5);
}

/// A network whose cost is the product of two layers' widths.
double product_share(const Removed& counts) {
  return 1 - (8.0 - counts[0]) * (8.0 - counts[1]) / 64.0;
}

TEST(LocalBudget, TakesTheSmallestUniformRatio) {
  const Request asked = request(0.5, Scope::kLocal, Budget::kParams);
  const std::vector<Candidate> candidates(2, candidate(asked, Scores(8)));
  const Counts counts = choose_counts(asked, candidates, product_share);
  EXPECT_EQ(counts.removed, (Removed{3, 3}));  // 25 of 64 stay; (2, 2) would leave 36
  EXPECT_DOUBLE_EQ(counts.reached, 1 - 25.0 / 64);
}

TEST(GlobalBudget, StopsAtTheFirstPrefixThatReaches) {
  const Request asked = request(0.5, Scope::kGlobal, Budget::kMacs);
  const std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 4, 5, 6, 7, 8}),
                                             candidate(asked, {9, 9, 9, 9, 9, 9, 9, 9})};
  EXPECT_EQ(choose_counts(asked, candidates, product_share).removed, (Removed{4, 0}));
}

TEST(Budgets, ThatCannotBeMetRemoveAllTheyMay) {
  Request asked = request(0.99, Scope::kLocal, Budget::kParams);
  asked.max_ratio = 0.25;
  const std::vector<Candidate> candidates(2, candidate(asked, Scores(8)));
  const Counts counts = choose_counts(asked, candidates, product_share);
  EXPECT_FALSE(counts.feasible);
  EXPECT_EQ(counts.removed, (Removed{2, 2}));
}

TEST(Budgets, AreMonotone) {
  const Scores first = {5, 1, 4, 1, 3, 9, 2, 6};
  const Scores second = {2, 7, 1, 8, 2, 8, 1, 8};
  for (Scope scope : {Scope::kLocal, Scope::kGlobal}) {
    for (Budget budget : {Budget::kChannels, Budget::kParams}) {
      for (int round_to : {1, 3}) {
        Removed before = {0, 0};
        for (int percent = 0; percent < 100; ++percent) {
          Request asked = request(percent / 100.0, scope, budget);
          asked.round_to = round_to;
          const std::vector<Candidate> candidates = {candidate(asked, first),
                                                     candidate(asked, second)};
          const Removed now = choose_counts(asked, candidates, product_share).removed;
          EXPECT_GE(now[0], before[0]) << percent;
          EXPECT_GE(now[1], before[1]) << percent;
          before = now;
        }
        EXPECT_GT(std::accumulate(before.begin(), before.end(), 0), 8);
      }
    }
  }
}

}  // namespace
}  // namespace parsimony
