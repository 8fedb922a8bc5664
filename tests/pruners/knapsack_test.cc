#include <gtest/gtest.h>

#include <random>

#include "parsimony/pruners/latency/widths.h"

namespace parsimony {
namespace {

using Items = std::vector<std::vector<KnapsackOption>>;

struct Sum {
  double cost = 0;
  double value = 0;
};

Sum sum_of(const Items& items, const std::vector<int>& chosen) {
  Sum sum;
  for (size_t i = 0; i < items.size(); ++i) {
    const KnapsackOption& option = items[i][chosen[i]];
    sum.cost += option.cost;
    sum.value += option.value;
  }
  return sum;
}

/// Every choice there is, one after the other.
std::optional<double> best_value(const Items& items, double budget) {
  std::vector<int> chosen(items.size(), 0);
  std::optional<double> best;
  while (true) {
    const Sum sum = sum_of(items, chosen);
    if (sum.cost <= budget && (!best || sum.value > *best)) best = sum.value;
    size_t i = 0;
    while (i < items.size() && ++chosen[i] == static_cast<int>(items[i].size())) chosen[i++] = 0;
    if (i == items.size()) return best;
  }
}

TEST(Knapsack, TakesOneOptionOfEveryItem) {
  EXPECT_EQ(best_options({{{1, 2}, {3, 5}}, {{0, 0}, {2, 4}}}, 3), (std::vector<int>{0, 1}));
  EXPECT_EQ(best_options({{{1, 2}, {3, 5}}, {{0, 0}, {2, 4}}}, 5), (std::vector<int>{1, 1}));
  EXPECT_EQ(best_options({}, 0), std::vector<int>{});
}

TEST(Knapsack, HasNoAnswerWhereTheCheapestCostTooMuch) {
  EXPECT_EQ(best_options({{{2, 9}, {1, 0}}, {{1, 0}}}, 1.9), std::nullopt);
  EXPECT_TRUE(best_options({{{2, 9}, {1, 0}}, {{1, 0}}}, 2).has_value());
}

TEST(Knapsack, AgreesWithTryingEverything) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> number(-1, 4);
  for (int round = 0; round < 200; ++round) {
    Items items(1 + generator() % 5);
    for (auto& options : items) {
      options.resize(1 + generator() % 5);
      for (KnapsackOption& option : options) option = {number(generator), number(generator)};
    }
    const double budget = number(generator) * 2;
    const auto expected = best_value(items, budget);
    const auto found = best_options(items, budget);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
    if (!found) continue;
    const Sum sum = sum_of(items, *found);
    EXPECT_LE(sum.cost, budget + 1e-12);
    EXPECT_NEAR(sum.value, *expected, 1e-12) << "round " << round;
  }
}

TEST(Knapsack, StaysWithinTheBudgetWhereItCannotBeExact) {
  std::mt19937 generator(11);
  std::uniform_real_distribution<double> number(0, 1);
  Items items(30);
  double dearest = 0;
  for (auto& options : items) {
    for (int level = 1; level <= 20; ++level) {
      options.push_back({level * number(generator), level * number(generator)});
    }
    dearest += options.back().cost;
  }
  const double budget = dearest / 2;
  const auto found = best_options(items, budget);
  ASSERT_TRUE(found.has_value());
  const Sum sum = sum_of(items, *found);
  EXPECT_LE(sum.cost, budget);
  // The relaxation to parts of options is an upper bound; the greedy lower one is far below it.
  EXPECT_GT(sum.cost, 0.99 * budget);
}

}  // namespace
}  // namespace parsimony
