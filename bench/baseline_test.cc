#include "bench/support/baseline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace parsimony::bench {
namespace {

Ratios run_of(double couple, double score) {
  return {{"chain/200/couple", couple}, {"chain/200/score", score}};
}

Baseline quiet() {
  const std::vector<Ratios> runs = {run_of(2, 4), run_of(2.02, 4.8), run_of(1.98, 4)};
  return summarise("AMD EPYC", runs);
}

Verdict verdict_of(const Baseline& baseline, const Ratios& found, const std::string& measure) {
  for (const Comparison& c : compare(baseline, found)) {
    if (c.measure == measure) return c.verdict;
  }
  throw std::runtime_error(measure + " was not compared");
}

TEST(Baseline, IsTheMedianAndTwiceTheDistanceOfTheExtremes) {
  const Baseline baseline = quiet();
  EXPECT_EQ(baseline.processor, "AMD EPYC");
  EXPECT_EQ(baseline.runs, 3);
  EXPECT_DOUBLE_EQ(baseline.measures.at("chain/200/couple").ratio, 2);
  EXPECT_DOUBLE_EQ(baseline.measures.at("chain/200/couple").band, 0.1);  // the least
  EXPECT_DOUBLE_EQ(baseline.measures.at("chain/200/score").ratio, 4);
  EXPECT_NEAR(baseline.measures.at("chain/200/score").band, 0.4, 1e-12);
}

TEST(Baseline, CatchesWhatIsSlowerThanTheBand) {
  const Baseline baseline = quiet();
  const Ratios slower = run_of(2.21, 4);
  EXPECT_EQ(verdict_of(baseline, slower, "chain/200/couple"), Verdict::kSlower);
  EXPECT_EQ(verdict_of(baseline, slower, "chain/200/score"), Verdict::kSame);
  EXPECT_FALSE(passes(compare(baseline, slower)));
}

TEST(Baseline, LetsNoisePass) {
  const Ratios noisy = run_of(2.19, 5.5);
  EXPECT_TRUE(passes(compare(quiet(), noisy)));
}

TEST(Baseline, TellsWhatIsQuicker) {
  const Ratios quicker = run_of(1.5, 4);
  EXPECT_EQ(verdict_of(quiet(), quicker, "chain/200/couple"), Verdict::kQuicker);
  EXPECT_TRUE(passes(compare(quiet(), quicker)));
}

// Where ratios scatter by 3 %: no false alarm in 200 runs, and half as much time again is
// found in each of them.
TEST(Baseline, TellsARegressionFromTheNoiseThatMadeIt) {
  std::mt19937 engine(1);
  std::normal_distribution<double> noise(0, 0.03);
  const auto measure = [&](double slower) {
    return Ratios{{"couple", 5 * slower * std::exp(noise(engine))}};
  };
  std::vector<Ratios> runs;
  for (int i = 0; i < 7; ++i) runs.push_back(measure(1));
  const Baseline baseline = summarise("", runs);
  for (const Ratios& run : runs) EXPECT_TRUE(passes(compare(baseline, run)));
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(passes(compare(baseline, measure(1))));
    EXPECT_FALSE(passes(compare(baseline, measure(1.5))));
  }
}

TEST(Baseline, MissesNothingAndTakesWhatIsNew) {
  Ratios found = {{"chain/200/couple", 2}, {"chain/200/plan", 1}};
  EXPECT_EQ(verdict_of(quiet(), found, "chain/200/score"), Verdict::kMissing);
  EXPECT_EQ(verdict_of(quiet(), found, "chain/200/plan"), Verdict::kNew);
  EXPECT_FALSE(passes(compare(quiet(), found)));
  found["chain/200/score"] = 4;
  EXPECT_TRUE(passes(compare(quiet(), found)));
}

TEST(Baseline, NeedsThreeRunsOfTheSameMeasures) {
  const std::vector<Ratios> two = {run_of(1, 1), run_of(1, 1)};
  EXPECT_THROW(summarise("", two), std::runtime_error);
  std::vector<Ratios> uneven = {run_of(1, 1), run_of(1, 1), run_of(1, 1)};
  uneven[1].erase("chain/200/score");
  EXPECT_THROW(summarise("", uneven), std::runtime_error);
}

TEST(Baseline, IsReadAsItWasWritten) {
  const std::string text = to_json(quiet());
  const Baseline read = parse_baseline(text, "baseline.json");
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.measures.size(), 2U);
  EXPECT_NEAR(read.measures.at("chain/200/score").band, 0.4, 1e-4);
}

TEST(Baseline, NamesTheFileThatIsNone) {
  const std::string good = to_json(quiet());
  std::string newer = good;
  newer.replace(newer.find(": 1"), 3, ": 9");
  std::string zero = good;
  zero.replace(zero.find("\"ratio\": 2"), 10, "\"ratio\": 0");
  for (const std::string& bad : {std::string("{}"), std::string("{"), newer, zero}) {
    try {
      parse_baseline(bad, "old.json");
      ADD_FAILURE() << bad;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).find("old.json: is no baseline: "), 0U) << error.what();
    }
  }
}

}  // namespace
}  // namespace parsimony::bench
