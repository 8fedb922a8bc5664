#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "parsimony/pruners/latency/model.h"

namespace parsimony {
namespace {

using Widths = std::vector<int>;

LatencyTable table() { return {"", {2, 4}, {10, 20, 40}, {1, 2, 3, 5, 6, 9}, 0}; }

TEST(LatencyTable, GivesWhatWasMeasured) {
  const LatencyTable t = table();
  for (size_t i = 0; i < t.x.size(); ++i) {
    for (size_t j = 0; j < t.y.size(); ++j) {
      EXPECT_EQ(t.at(t.x[i], t.y[j]), t.seconds[i * t.y.size() + j]);
    }
  }
}

TEST(LatencyTable, IsBilinearBetween) {
  EXPECT_DOUBLE_EQ(table().at(3, 10), 3);
  EXPECT_DOUBLE_EQ(table().at(2, 30), 2.5);
  EXPECT_DOUBLE_EQ(table().at(3, 15), (1 + 2 + 5 + 6) / 4.0);
  EXPECT_DOUBLE_EQ(table().at(2.5, 10), 2);
}

TEST(LatencyTable, StaysAtItsEdges) {
  EXPECT_DOUBLE_EQ(table().at(1, 10), 1);
  EXPECT_DOUBLE_EQ(table().at(9, 99), 9);
  EXPECT_DOUBLE_EQ(LatencyTable{}.at(1, 1), 0);
}

TEST(LatencyTable, KnowsWhetherItIsSound) {
  EXPECT_TRUE(table().is_sound());
  EXPECT_TRUE(LatencyTable{}.is_sound());
  LatencyTable t = table();
  t.x = {4, 2};
  EXPECT_FALSE(t.is_sound());
  t = table();
  t.seconds.pop_back();
  EXPECT_FALSE(t.is_sound());
  t = table();
  t.seconds[0] = -1;
  EXPECT_FALSE(t.is_sound());
  t.seconds[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(t.is_sound());
  t = table();
  t.y = {0, 20, 40};
  EXPECT_FALSE(t.is_sound());
}

TEST(FirstWidths, AreTheEndsAndQuarters) {
  EXPECT_EQ(first_widths(64), (Widths{1, 16, 32, 48, 64}));
  EXPECT_EQ(first_widths(3), (Widths{1, 2, 3}));
  EXPECT_EQ(first_widths(1), (Widths{1}));
}

TEST(NextWidth, HalvesTheIntervalOfTheLargestChange) {
  EXPECT_EQ(next_width(Widths{1, 8, 16}, std::vector<double>{1, 1.1, 3}), 12);
  // A step between 8 and 9 is found, and then nothing is left to look at.
  std::vector<int> widths = {1, 16};
  const auto time = [](int width) { return width <= 8 ? 1.0 : 2.0; };
  for (int round = 0; round < 10; ++round) {
    std::vector<double> seconds;
    for (const int width : widths) seconds.push_back(time(width));
    const int next = next_width(widths, seconds);
    if (next == 0) break;
    widths.insert(std::lower_bound(widths.begin(), widths.end(), next), next);
  }
  EXPECT_EQ(widths, (Widths{1, 8, 9, 10, 12, 16}));
}

TEST(NextWidth, EndsWhereNothingChanges) {
  EXPECT_EQ(next_width(Widths{1, 8, 16}, std::vector<double>{1, 1.02, 1.01}), 0);
  EXPECT_EQ(next_width(Widths{1, 2}, std::vector<double>{1, 5}), 0);
  EXPECT_EQ(next_width(Widths{}, std::vector<double>{}), 0);
}

}  // namespace
}  // namespace parsimony
