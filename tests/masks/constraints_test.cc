// Why dimensions are not prunable, and how far such a constraint reaches.
#include <gtest/gtest.h>

#include "tests/masks/small_net.h"

namespace parsimony::test {
namespace {

TEST(Constraints, TheEndsOfTheGraphAreFixed) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const Solved solved = n.solve(n.linear(a, "2", {8, 4}));
  EXPECT_EQ(solved.constraint("W1[0]"), "graph input \"x\"");
  EXPECT_EQ(solved.constraint("W1[1]"), "");
  EXPECT_EQ(solved.constraint("W2[0]"), "");
  EXPECT_EQ(solved.constraint("W2[1]"), "graph output \"2\"");
}

TEST(Constraints, AHiddenValueThatIsAnOutputIsFixed) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  n.output(a);
  const Solved solved = n.solve(n.linear(a, "2", {8, 4}));
  EXPECT_EQ(solved.groups(), Texts{});
  EXPECT_EQ(solved.constraint("W1[1]"), "graph output \"1\"");
  EXPECT_EQ(solved.constraint("W2[0]"), "graph output \"1\"");
}

TEST(Constraints, AnUnknownOperatorFixesItsOperands) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.node("Mystery", {a}, "m");
  const Solved solved = n.solve(n.node("Relu", {b}, "r"));
  EXPECT_EQ(solved.groups(), Texts{});
  EXPECT_EQ(solved.constraint("W1[1]"), "unknown operator Mystery at m");
}

TEST(Constraints, TravelThroughWhatIsUnited) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.node("Tanh", {n.node("Relu", {a}, "r")}, "t");
  n.output(n.node("Mystery", {b}, "m"));
  const Solved solved = n.solve(n.linear(n.node("Neg", {a}, "n"), "2", {8, 4}));
  EXPECT_EQ(solved.groups(), Texts{});
  EXPECT_EQ(solved.constraint("W2[0]"), "unknown operator Mystery at m");
}

TEST(Constraints, StopAtTheNextWeight) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.linear(a, "2", {8, 5});
  const Solved solved = n.solve(n.node("Mystery", {b}, "m"));
  EXPECT_EQ(solved.groups(), Texts{"g0: 8 channels; W1[1] out; W2[0] in"});
  EXPECT_EQ(solved.constraint("W2[1]"), "unknown operator Mystery at m");
}

TEST(Constraints, APieceOfAConcatMayBeFixedAlone) {
  SmallNet n;
  const auto x = n.x({2, 6});
  const auto c = n.node("Concat", {x, n.linear(x, "1", {6, 3})}, "c", {{"axis", int64_t{1}}});
  const Solved solved = n.solve(n.linear(c, "2", {9, 4}));
  EXPECT_EQ(solved.groups(), Texts{"g0: 3 channels, not zero without its weights; W1[1] out; "
                                   "W2[0] in: 6 7 8"});
  EXPECT_EQ(solved.constraint("W2[0]"), "6 of 9: graph input \"x\"");
}

TEST(Constraints, AFixedPartOfASliceFixesThoseIndices) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  n.output(n.slice(a, "s", 2, 5));
  const Solved solved = n.solve(n.linear(a, "2", {8, 4}));
  EXPECT_EQ(solved.groups(), Texts{"g0: 5 channels; W1[1] out: 0 1 5 6 7; W2[0] in: 0 1 5 6 7"});
  EXPECT_EQ(solved.constraint("W1[1]"), "3 of 8: graph output \"s\"");
}

TEST(Constraints, OneIndexThatIsAWholeDimensionStays) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto sum =
      n.node("Add", {n.linear(n.slice(a, "s", 3, 4), "2", {1, 4}), n.linear(a, "3", {8, 4})}, "y");
  const Solved solved = n.solve(sum);
  EXPECT_EQ(solved.constraint("W1[1]"), "1 of 8: is all of \"s\" at s");
}

TEST(Constraints, AKernelsExtentIsTheOperatorsOwn) {
  SmallNet n;
  const auto a = n.conv(n.x({1, 3, 6, 6}), "1", {8, 3, 3, 3});
  const Solved solved = n.solve(n.conv(a, "2", {4, 8, 1, 1}));
  EXPECT_EQ(solved.constraint("W1[2]"), "data flows along it (axis 'k1') at 1, structural");
  EXPECT_EQ(solved.constraint("W2[2]"), "");  // of size 1
}

TEST(Constraints, WhatWindowsMoveOverIsFixed) {
  SmallNet n;
  const auto x = n.node("Add", {n.x({1, 3, 6, 6}), n.floats("table", {6, 6})}, "a");
  const Solved solved = n.solve(n.conv(x, "1", {8, 3, 3, 3}));
  EXPECT_EQ(solved.constraint("table[0]"), "graph input \"x\"");
  SmallNet m;
  const auto a = m.linear(m.x({1, 3, 6, 5}), "1", {5, 7});
  EXPECT_EQ(m.solve(m.conv(a, "2", {8, 3, 3, 3})).constraint("W1[1]"),
            "data flows along it (axis 's0') at 2");
}

TEST(Constraints, NodesCanBeExcluded) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.linear(n.node("Relu", {a}, "r"), "2", {8, 5});
  CouplingOptions options;
  options.pinned_nodes.emplace_back(1);
  const Solved solved = n.solve(n.linear(b, "3", {5, 4}), options);
  EXPECT_EQ(solved.groups(), Texts{"g0: 5 channels; W2[1] out; W3[0] in"});
  EXPECT_EQ(solved.constraint("W1[1]"), "the smaller shapes did not fit here at r");
}

TEST(Constraints, IndicesThatAreAllTiedAreOneChannel) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto sum = n.node("Add", {n.slice(a, "l", 0, 7), n.slice(a, "r", 1, 8)}, "s");
  const Solved solved = n.solve(n.linear(sum, "2", {7, 4}));
  EXPECT_EQ(solved.constraint("W1[1]"), "all its indices hang together as one channel");
}

TEST(Constraints, AWeightWithoutReadersIsNotPrunable) {
  SmallNet n;
  n.floats("idle", {3, 4});
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const Solved solved = n.solve(n.linear(a, "2", {8, 4}));
  EXPECT_EQ(solved.constraint("idle[0]"), "is read by no node");
  EXPECT_EQ(solved.constraint("idle[1]"), "is read by no node");
}

// Memory stays within bounds: a weight without data does not raise the limit.
TEST(Constraints, ADimensionOfMillionsIsNotLookedAtIndexByIndex) {
  constexpr int64_t kLong = 1'000'000;
  SmallNet n;
  const auto w1 = n.weight("W1", std::vector<float>{}, {6, kLong}, DType::kFloat32);
  const auto w2 = n.weight("W2", std::vector<float>{}, {kLong, 4}, DType::kFloat32);
  for (Weight& weight : n.graph.weights) weight.data = nullptr;
  const auto a = n.node("MatMul", {n.x({2, 6}), w1}, "a");
  const Solved solved = n.solve(n.node("MatMul", {a, w2}, "y"));
  EXPECT_EQ(solved.groups(), Texts{});
  EXPECT_EQ(solved.constraint("W1[1]"), "longer than any channel axis");
}

}  // namespace
}  // namespace parsimony::test
