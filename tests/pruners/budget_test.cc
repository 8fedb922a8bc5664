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
  return {.limits = limits_of(asked, static_cast<int>(scores.size())),
          .score = scores,
          .order = removal_order(scores)};
}

int removed(const Request& asked, int size, int requested) {
  return limits_of(asked, size).removed(requested);
}

TEST(GroupLimits, KeepAtLeastOne) {
  EXPECT_EQ(removed(request(0.99), 8, 8), 7);
  EXPECT_EQ(removed(request(0.99), 1, 1), 0);
}

TEST(GroupLimits, HoldMinAndMaxRatio) {
  Request asked = request(0.5);
  asked.min_ratio = 0.25;
  asked.max_ratio = 0.6;
  EXPECT_EQ(removed(asked, 10, 0), 3);
  EXPECT_EQ(removed(asked, 10, 5), 5);
  EXPECT_EQ(removed(asked, 10, 9), 6);
}

TEST(GroupLimits, RoundUpWhatStays) {
  Request asked = request(0.5);
  asked.round_to = 8;
  EXPECT_EQ(removed(asked, 64, 32), 32);
  EXPECT_EQ(removed(asked, 64, 33), 32);
  EXPECT_EQ(removed(asked, 20, 3), 0);  // 17 would stay, 24 are not there
  EXPECT_EQ(removed(asked, 20, 4), 4);
  EXPECT_EQ(removed(asked, 6, 5), 0);
}

TEST(GroupLimits, KeepAtLeastSoMany) {
  Request asked = request(0.99);
  asked.keep_at_least = 3;
  EXPECT_EQ(removed(asked, 8, 8), 5);
  EXPECT_EQ(removed(asked, 2, 2), 0);
}

TEST(GroupLimits, LoseTheSameNumberOfEveryBlock) {
  Request asked = request(0.5);
  asked.metric_blocks = 4;
  EXPECT_EQ(removed(asked, 16, 7), 4);
  asked.round_to = 6;
  EXPECT_EQ(removed(asked, 24, 20), 12);
}

TEST(GroupLimits, FewerIsTheNextThatIsAllowed) {
  Request asked = request(0.5);
  asked.round_to = 8;
  asked.min_ratio = 0.25;
  const GroupLimits limits = limits_of(asked, 64);
  EXPECT_EQ(limits.fewer(32), 24);
  EXPECT_EQ(limits.fewer(16), 16);
}

TEST(GroupLimits, TheStricterHold) {
  Request first = request(0.5);
  first.min_ratio = 0.5;
  first.round_to = 4;
  Request second = request(0.5);
  second.max_ratio = 0.25;
  second.round_to = 6;
  const GroupLimits both = stricter(limits_of(first, 48), limits_of(second, 48));
  EXPECT_EQ(both.least, 12);
  EXPECT_EQ(both.most, 12);
  EXPECT_EQ(both.round_to, 12);
}

TEST(RemovalOrder, TakesOneOfEveryBlockInTurn) {
  EXPECT_EQ(removal_order({5, 1, 3, 2, 9, 8}, 2), (Removed{1, 3, 2, 5, 0, 4}));
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
  const Counts counts = choose_counts(asked, candidates);
  EXPECT_EQ(counts.removed, (Removed{29, 0}));
  EXPECT_TRUE(counts.feasible);
}

TEST(GlobalChannels, TakeTheLowestOfAll) {
  const Request asked = request(0.5, Scope::kGlobal);
  const std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 10}),
                                             candidate(asked, {9, 8, 7, 6})};
  EXPECT_EQ(choose_counts(asked, candidates).removed, (Removed{3, 1}));
}

TEST(GlobalChannels, PassOverGroupsThatAreAtTheirLimit) {
  Request asked = request(0.5, Scope::kGlobal);
  asked.max_ratio = 0.5;
  const std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 10}),
                                             candidate(asked, {9, 8, 7, 6})};
  EXPECT_EQ(choose_counts(asked, candidates).removed, (Removed{2, 2}));
  asked.ratio = 0.9;
  const Counts short_of = choose_counts(asked, candidates);
  EXPECT_FALSE(short_of.feasible);
  EXPECT_DOUBLE_EQ(short_of.reached, 0.5);
}

/// Parameters of a network whose cost is the product of two layers' widths.
double product(const Removed& counts) { return (8.0 - counts[0]) * (8.0 - counts[1]); }

TEST(LocalBudget, StartsFromTheSmallestUniformRatioAndGivesBackWhatFits) {
  const Request asked = request(0.5, Scope::kLocal, Budget::kParams);
  const std::vector<Candidate> candidates = {candidate(asked, {1, 1, 1, 1, 1, 1, 1, 1}),
                                             candidate(asked, {1, 2, 3, 4, 5, 6, 7, 8})};
  const Counts counts = fit_budget(asked, candidates, product, 32);
  // (3, 3) leaves 25, (2, 2) would leave 36; the second's third channel is the better one.
  EXPECT_EQ(counts.removed, (Removed{3, 2}));
  EXPECT_DOUBLE_EQ(counts.remaining, 30);
}

TEST(GlobalBudget, TakesTheLowestOfAll) {
  const Request asked = request(0.5, Scope::kGlobal, Budget::kMacs);
  const std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 4, 5, 6, 7, 8}),
                                             candidate(asked, {9, 9, 9, 9, 9, 9, 9, 9})};
  EXPECT_EQ(fit_budget(asked, candidates, product, 32).removed, (Removed{4, 0}));
  EXPECT_EQ(fit_budget(asked, candidates, product, 31).removed, (Removed{5, 0}));
}

TEST(IsomorphicBudget, TakesTheSameShareOfEveryClass) {
  const Request asked = request(0, Scope::kIsomorphic, Budget::kParams);
  std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 4, 5, 6, 7, 8}),
                                       candidate(asked, {9, 9, 9, 9, 9, 9, 9, 9})};
  candidates[1].shape = 1;
  EXPECT_EQ(fit_budget(asked, candidates, product, 16).removed, (Removed{4, 4}));
}

TEST(Budgets, ThatCannotBeMetRemoveAllTheyMay) {
  Request asked = request(0.99, Scope::kLocal, Budget::kParams);
  asked.max_ratio = 0.25;
  const std::vector<Candidate> candidates(2, candidate(asked, Scores(8)));
  const Counts counts = fit_budget(asked, candidates, product, 1);
  EXPECT_FALSE(counts.feasible);
  EXPECT_EQ(counts.removed, (Removed{2, 2}));
  EXPECT_DOUBLE_EQ(counts.remaining, 36);
}

TEST(Budgets, AreNeverExceededAndLeaveNoRoom) {
  const Scores first = {5, 1, 4, 1, 3, 9, 2, 6};
  const Scores second = {2, 7, 1, 8, 2, 8, 1, 8};
  for (Scope scope : {Scope::kLocal, Scope::kGlobal, Scope::kIsomorphic}) {
    for (int round_to : {1, 3}) {
      for (int most = 4; most <= 64; ++most) {
        Request asked = request(0, scope, Budget::kParams);
        asked.round_to = round_to;
        const std::vector<Candidate> candidates = {candidate(asked, first),
                                                   candidate(asked, second)};
        const Counts counts = fit_budget(asked, candidates, product, most);
        EXPECT_EQ(counts.feasible, most >= round_to * round_to);
        if (!counts.feasible) continue;
        EXPECT_LE(product(counts.removed), most);
        for (size_t i : {0U, 1U}) {
          Removed more = counts.removed;
          more[i] = candidates[i].limits.fewer(more[i]);
          EXPECT_TRUE(more == counts.removed || product(more) > most) << most;
        }
      }
    }
  }
}

TEST(Channels, AreMonotone) {
  const Scores first = {5, 1, 4, 1, 3, 9, 2, 6};
  const Scores second = {2, 7, 1, 8, 2, 8, 1, 8};
  for (Scope scope : {Scope::kLocal, Scope::kGlobal, Scope::kIsomorphic}) {
    for (Budget budget : {Budget::kChannels, Budget::kWeights}) {
      for (int round_to : {1, 3}) {
        Removed before = {0, 0};
        for (int percent = 0; percent < 100; ++percent) {
          Request asked = request(percent / 100.0, scope, budget);
          asked.round_to = round_to;
          std::vector<Candidate> candidates = {candidate(asked, first), candidate(asked, second)};
          candidates[1].weight = 3;
          const Removed now = choose_counts(asked, candidates).removed;
          EXPECT_GE(now[0], before[0]) << percent;
          EXPECT_GE(now[1], before[1]) << percent;
          before = now;
        }
        EXPECT_GT(std::accumulate(before.begin(), before.end(), 0), 8);
      }
    }
  }
}

TEST(Weights, CountWhatAChannelHas) {
  const Request asked = request(0.5, Scope::kGlobal, Budget::kWeights);
  std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 4}),
                                       candidate(asked, {5, 6, 7, 8})};
  candidates[0].weight = 10;
  candidates[1].weight = 30;  // 80 of 160 go: all four tens but one, which must stay, and two more
  EXPECT_EQ(choose_counts(asked, candidates).removed, (Removed{3, 2}));
  EXPECT_DOUBLE_EQ(choose_counts(asked, candidates).reached, 90.0 / 160);
}

TEST(Isomorphic, ShareTheRatioWithinAClassOnly) {
  const Request asked = request(0.5, Scope::kIsomorphic);
  std::vector<Candidate> candidates = {candidate(asked, {1, 2, 3, 10}),
                                       candidate(asked, {9, 8, 7, 6}),
                                       candidate(asked, {100, 101, 102, 103})};
  candidates[2].shape = 7;
  EXPECT_EQ(choose_counts(asked, candidates).removed, (Removed{3, 1, 2}));
}

TEST(Threshold, RemovesWhatScoresLess) {
  Request asked = request(0);
  asked.threshold = 2.5;
  asked.min_ratio = 0.25;
  asked.max_ratio = 0.5;
  std::vector<Candidate> candidates(3, candidate(asked, Scores(8)));
  candidates[1].below = 3;
  candidates[2].below = 7;
  EXPECT_EQ(choose_counts(asked, candidates).removed, (Removed{2, 3, 4}));
}

}  // namespace
}  // namespace parsimony
