// Which factors of a dimension are removed: the granularity, and axes that compete.
#include <gtest/gtest.h>

#include "tests/masks/small_net.h"

namespace parsimony::test {
namespace {

CouplingOptions by(Granularity granularity) {
  CouplingOptions options;
  options.granularity = granularity;
  return options;
}

/// Attention of two heads of four: its operator names the axes.
Solved attention(SmallNet& n, const CouplingOptions& options) {
  const auto x = n.x({2, 5, 6});
  const auto q = n.linear(x, "Q", {6, 8});
  const auto k = n.linear(x, "K", {6, 8});
  const auto v = n.linear(x, "V", {6, 8});
  const auto a = n.value("a");
  Node& node = n.add("MultiHeadAttention", {q, k, v}, {a}, {{"num_heads", int64_t{2}}});
  node.domain = "com.microsoft";
  node.name = "a";
  return n.solve(n.linear(a, "O", {8, 3}), options);
}

TEST(Axes, HeadsAreRemovedByHeads) {
  SmallNet n;
  EXPECT_EQ(attention(n, by(Granularity::kHead)).groups(),
            Texts{"g0: 2 channels by head; WQ[1] out: 0-3 4-7; WK[1] out: 0-3 4-7; "
                  "WV[1] out: 0-3 4-7; WO[0] in: 0-3 4-7"});
}

TEST(Axes, HeadDimensionsAreThoseOfQueryAndKeyAndThoseOfValues) {
  SmallNet n;
  EXPECT_EQ(attention(n, by(Granularity::kHeadDim)).groups(),
            (Texts{"g0: 4 channels by head_dim, summed without a weight; "
                   "WQ[1] out: 0+4 1+5 2+6 3+7; WK[1] out: 0+4 1+5 2+6 3+7",
                   "g1: 4 channels by head_dim; WV[1] out: 0+4 1+5 2+6 3+7; "
                   "WO[0] in: 0+4 1+5 2+6 3+7"}));
}

TEST(Axes, OfCompetingAxesTheLargestIsRemoved) {
  SmallNet n;
  const Texts groups = attention(n, {}).groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[1], "g1: 4 channels; WV[1] out: 0+4 1+5 2+6 3+7; WO[0] in: 0+4 1+5 2+6 3+7");
}

TEST(Axes, ALayerMayHaveAGranularityOfItsOwn) {
  SmallNet n;
  CouplingOptions options;
  options.of_layers.emplace_back(0, Granularity::kHead);  // the queries
  EXPECT_EQ(attention(n, options).groups()[0].substr(0, 23), "g0: 2 channels by head;");
}

TEST(Axes, GroupsOfAConvolutionAreRemovedByGroup) {
  SmallNet n;
  const auto a = n.conv(n.x({1, 3, 4, 4}), "1", {6, 3, 1, 1});
  const auto b = n.conv(a, "2", {8, 3, 1, 1}, {{"group", int64_t{2}}});
  EXPECT_EQ(n.solve(n.conv(b, "3", {4, 8, 1, 1}), by(Granularity::kGroup)).groups(),
            Texts{"g0: 2 channels by group; W1[0] out: 0-2 3-5; W2[0] out: 0-3 4-7; "
                  "W3[1] in: 0-3 4-7"});
}

TEST(Axes, AnAxisThatIsFixedLeavesTheOtherFree) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.node("Softmax", {n.reshape(a, "r", {2, 4, 2})}, "s");
  const Solved solved = n.solve(n.linear(b, "2", {2, 3}));  // the output has the 4
  EXPECT_EQ(solved.groups(),
            Texts{"g0: 2 channels, mixed at s, outcomes for 2, not zero without its weights, "
                  "summed without a weight; W1[1] out: 0+2+4+6 1+3+5+7; W2[0] in"});
}

}  // namespace
}  // namespace parsimony::test
