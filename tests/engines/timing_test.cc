// Statistics against values computed by hand, and turns on a clock that the work itself moves.
#include "parsimony/engines/timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace parsimony::machine {
namespace {

TEST(Summary, TakesQuartilesBetweenTimes) {
  const Summary odd = summary_of(std::vector<double>{9, 2, 4, 1, 3});
  EXPECT_DOUBLE_EQ(odd.median, 3);
  EXPECT_DOUBLE_EQ(odd.low, 2);
  EXPECT_DOUBLE_EQ(odd.high, 4);
  EXPECT_DOUBLE_EQ(odd.spread(), 2.0 / 3);
  EXPECT_EQ(odd.runs, 5);
  const Summary even = summary_of(std::vector<double>{4, 1, 2, 3});
  EXPECT_DOUBLE_EQ(even.median, 2.5);
  EXPECT_DOUBLE_EQ(even.low, 1.75);
  EXPECT_DOUBLE_EQ(even.high, 3.25);
}

TEST(Summary, OfOneTimeOrNone) {
  const Summary one = summary_of(std::vector<double>{7});
  EXPECT_DOUBLE_EQ(one.median, 7);
  EXPECT_DOUBLE_EQ(one.spread(), 0);
  const Summary none = summary_of({});
  EXPECT_DOUBLE_EQ(none.median, 0);
  EXPECT_DOUBLE_EQ(none.spread(), 0);
  EXPECT_EQ(none.runs, 0);
}

std::vector<double> ascending(int count) {
  std::vector<double> values;
  for (int i = 1; i <= count; ++i) values.push_back(i);
  return values;
}

struct Interval {
  int pairs;
  double low;
  double high;
};

class Compare : public testing::TestWithParam<Interval> {};

// Of n ratios 1, 2, …, n: the widest tails of heads in n throws that stay within 2.5%. With 10
// throws at most one head has 11/1024, at most two have 56/1024: one is left out at either end.
TEST_P(Compare, LeavesOutWhatTheTailsAllow) {
  const auto [pairs, low, high] = GetParam();
  const std::vector<double> ones(pairs, 1);
  const Ratio ratio = compare(ascending(pairs), ones);
  EXPECT_EQ(ratio.pairs, pairs);
  EXPECT_DOUBLE_EQ(ratio.median, (pairs + 1) / 2.0);
  EXPECT_DOUBLE_EQ(ratio.low, low);
  EXPECT_DOUBLE_EQ(ratio.high, high);
}

INSTANTIATE_TEST_SUITE_P(Pairs, Compare,
                         testing::Values(Interval{5, 0, INFINITY}, Interval{6, 1, 6},
                                         Interval{8, 1, 8}, Interval{9, 2, 8}, Interval{10, 2, 9},
                                         Interval{20, 6, 15}, Interval{100, 40, 61},
                                         Interval{2000, 956, 1045}));

TEST(Ratio, GoesByPairs) {
  // The machine got three times as slow in between; b takes half as long as a throughout.
  const std::vector<double> a = {2, 2, 2, 2, 6, 6, 6, 6};
  const std::vector<double> b = {1, 1, 1, 1, 3, 3, 3, 3};
  const Ratio ratio = compare(a, b);
  EXPECT_DOUBLE_EQ(ratio.median, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 2);
  EXPECT_TRUE(ratio.differs());
}

TEST(Ratio, TellsNoiseFromDifference) {
  EXPECT_FALSE((Ratio{1.3, 0.9, 1.7, 20}.differs()));
  EXPECT_TRUE((Ratio{0.8, 0.7, 0.9, 20}.differs()));
  EXPECT_FALSE((Ratio{1.005, 1.004, 1.006, 900}.differs())) << "too little to speak of";
  EXPECT_FALSE(compare(std::vector<double>{2, 2, 2}, std::vector<double>{1, 1, 1}).differs())
      << "too few pairs";
  EXPECT_FALSE(compare({}, {}).differs());
}

/// Work that takes what it says, on a clock that nothing else moves.
class Contestants {
 public:
  Clock clock() {
    return [this] { return now_; };
  }
  Work work(char name, double seconds) {
    return [this, name, seconds] {
      log_ += name;
      now_ += seconds;
    };
  }
  /// Each run takes `ratio` of the one before, down to `least`.
  Work settling(double seconds, double ratio, double least) {
    return [this, seconds, ratio, least]() mutable {
      log_ += 'w';
      now_ += seconds;
      seconds = std::max(least, ratio * seconds);
    };
  }
  const std::string& log() const { return log_; }

 private:
  double now_ = 0;
  std::string log_;
};

TEST(Interleaved, AlternateAndCountTheLongRuns) {
  Contestants shop;
  const std::vector<Work> contestants = {shop.work('a', 0.5), shop.work('b', 0.25)};
  const auto samples = run_interleaved(contestants, {.seconds = 1.5}, shop.clock());
  EXPECT_EQ(shop.log(), "ababababab") << "once to see how long they take, then 3 s in turn";
  EXPECT_EQ(samples[0].runs, (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(samples[1].rounds, (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
}

TEST(Interleaved, ShortWorkBeginsWithARunThatIsNotCounted) {
  Contestants shop;
  const std::vector<Work> contestants = {shop.work('a', 1.0 / 512), shop.work('b', 0.25)};
  const auto samples = run_interleaved(contestants, {.seconds = 0.01}, shop.clock());
  EXPECT_EQ(shop.log(),
            "ab"
            "aaab"
            "aaab"
            "aaab")
      << "two runs of a fill 5 ms";
  EXPECT_EQ(samples[0].runs.size(), 6U);
  EXPECT_EQ(samples[0].rounds.size(), 3U);
  EXPECT_EQ(samples[1].runs.size(), 3U);
}

TEST(Interleaved, WorkWithoutDurationEnds) {
  Contestants shop;
  const std::vector<Work> contestants = {shop.work('a', 0), shop.work('b', 0.125)};
  const auto samples = run_interleaved(contestants, {.seconds = 0}, shop.clock());
  EXPECT_EQ(samples[0].runs.size(), 96U);
  EXPECT_TRUE(run_interleaved({}, {}, shop.clock()).empty());
}

TEST(Interleaved, RunAsOftenAsWasAsked) {
  Contestants shop;
  const std::vector<Work> contestants = {shop.work('a', 0.5), shop.work('b', 0.5)};
  const auto samples = run_interleaved(contestants, {.seconds = 0, .runs = 4}, shop.clock());
  EXPECT_EQ(shop.log(),
            "abababab"
            "ab");
  EXPECT_EQ(samples[1].runs.size(), 4U);
}

TEST(WarmUp, EndsWhenRunsGetNoQuicker) {
  Contestants shop;
  const int runs = warm_up(shop.settling(1, 0.5, 1.0 / 64), {.seconds = 1000}, shop.clock());
  // 1, 1/2, … 1/32 are six runs; then the last five must be as slow as the five before.
  EXPECT_EQ(runs, 14);
}

TEST(WarmUp, IsBounded) {
  Contestants shop;
  EXPECT_EQ(warm_up(shop.settling(1, 0.9, 0), {.seconds = 9}, shop.clock()), 4);
  EXPECT_EQ(warm_up(shop.work('a', 60), {.seconds = 3}, shop.clock()), 3);
  EXPECT_EQ(warm_up(shop.work('a', 60), {.warm_up = 2}, shop.clock()), 2);
  EXPECT_EQ(warm_up(shop.work('a', 60), {.warm_up = 0}, shop.clock()), 0);
}

}  // namespace
}  // namespace parsimony::machine
