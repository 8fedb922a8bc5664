// What can only be removed together: one law a test, on graphs of a few nodes.
#include "parsimony/masks/coupling.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/masks/small_net.h"

namespace parsimony::test {
namespace {

TEST(Coupling, AChainTiesProducerAndConsumer) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  EXPECT_EQ(n.solve(n.linear(a, "2", {8, 4})).groups(),
            Texts{"g0: 8 channels; W1[1] out; W2[0] in"});
}

TEST(Coupling, ABiasFollowsItsProducer) {
  SmallNet n;
  const auto a = n.node("Gemm", {n.x({2, 6}), n.floats("W", {6, 8}), n.floats("b", {8})}, "a");
  EXPECT_EQ(n.solve(n.linear(a, "2", {8, 4})).groups(),
            Texts{"g0: 8 channels; W[1] out; b[0] out; W2[0] in"});
}

TEST(Coupling, ElementwiseOperatorsPassChannelsOn) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.node("Tanh", {n.node("Relu", {a}, "r")}, "t");
  EXPECT_EQ(n.solve(n.linear(b, "2", {8, 4})).groups(),
            Texts{"g0: 8 channels; W1[1] out; W2[0] in"});
}

TEST(Coupling, AResidualAddJoinsItsBranches) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.linear(a, "2", {8, 8});
  EXPECT_EQ(n.solve(n.linear(n.node("Add", {a, b}, "s"), "3", {8, 4})).groups(),
            Texts{"g0: 8 channels; W1[1] out; W2[0] in; W2[1] out; W3[0] in"});
}

TEST(Coupling, AProductOfBranchesJoinsThem) {
  SmallNet n;
  const auto x = n.x({2, 6});
  const auto gated = n.node("Mul", {n.linear(x, "1", {6, 8}), n.linear(x, "2", {6, 8})}, "m");
  EXPECT_EQ(n.solve(n.linear(gated, "3", {8, 4})).groups(),
            Texts{"g0: 8 channels; W1[1] out; W2[1] out; W3[0] in"});
}

TEST(Coupling, ABroadcastDimensionOfOneTiesNothing) {
  SmallNet n;
  const auto x = n.x({2, 6});
  const auto sum = n.node("Add", {n.linear(x, "1", {6, 8}), n.linear(x, "2", {6, 1})}, "s");
  EXPECT_EQ(n.solve(n.linear(sum, "3", {8, 4})).groups(),
            Texts{"g0: 8 channels, not zero without its weights; W1[1] out; W3[0] in"});
}

TEST(Coupling, NormalisationStatisticsFollowTheirChannels) {
  SmallNet n;
  const auto a = n.conv(n.x({1, 3, 4, 4}), "1", {8, 3, 1, 1});
  const auto b = n.node("BatchNormalization",
                        {a, n.floats("gamma", {8}), n.floats("beta", {8}), n.floats("mean", {8}),
                         n.floats("var", {8})},
                        "b");
  EXPECT_EQ(n.solve(n.conv(b, "2", {4, 8, 1, 1})).groups(),
            Texts{"g0: 8 channels; W1[0] out; gamma[0] out; beta[0] out; mean[0] out; var[0] out; "
                  "W2[1] in"});
}

TEST(Coupling, ADepthwiseConvolutionHangsOnItsInput) {
  SmallNet n;
  const auto a = n.conv(n.x({1, 3, 4, 4}), "1", {8, 3, 1, 1});
  const auto b = n.conv(a, "2", {8, 1, 3, 3}, {{"group", int64_t{8}}});
  EXPECT_EQ(n.solve(n.conv(b, "3", {4, 8, 1, 1})).groups(),
            Texts{"g0: 8 channels; W1[0] out; W2[0] out; W3[1] in"});
}

TEST(Coupling, AGroupedConvolutionTakesAChannelOfEveryGroup) {
  SmallNet n;
  const auto a = n.conv(n.x({1, 3, 4, 4}), "1", {6, 3, 1, 1});
  const auto b = n.conv(a, "2", {8, 3, 1, 1}, {{"group", int64_t{2}}});
  EXPECT_EQ(n.solve(n.conv(b, "3", {4, 8, 1, 1})).groups(),
            (Texts{"g0: 3 channels; W1[0] out: 0+3 1+4 2+5; W2[1] in",
                   "g1: 4 channels; W2[0] out: 0+4 1+5 2+6 3+7; W3[1] in: 0+4 1+5 2+6 3+7"}));
}

TEST(Coupling, ConcatKeepsItsPiecesApart) {
  SmallNet n;
  const auto x = n.x({2, 6});
  const auto c = n.node("Concat", {n.linear(x, "1", {6, 2}), n.linear(x, "2", {6, 3})}, "c",
                        {{"axis", int64_t{1}}});
  EXPECT_EQ(n.solve(n.linear(c, "3", {5, 4})).groups(),
            (Texts{"g0: 2 channels; W1[1] out; W3[0] in: 0 1",
                   "g1: 3 channels; W2[1] out; W3[0] in: 2 3 4"}));
}

TEST(Coupling, SplitKeepsItsPartsApart) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 5});
  const auto left = n.value("left");
  const auto right = n.value("right");
  n.add("Split", {a, n.integers("parts", {2, 3})}, {left, right}, {{"axis", int64_t{1}}});
  const auto sum = n.node("Add", {n.linear(left, "2", {2, 4}), n.linear(right, "3", {3, 4})}, "s");
  EXPECT_EQ(n.solve(sum).groups(), (Texts{"g0: 2 channels; W1[1] out: 0 1; W2[0] in",
                                          "g1: 3 channels; W1[1] out: 2 3 4; W3[0] in"}));
}

TEST(Coupling, ASliceTiesOnlyWhatItTakes) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 5});
  const auto part = n.slice(a, "p", 1, 3);
  const auto sum = n.node("Add", {n.linear(part, "2", {2, 4}), n.linear(a, "3", {5, 4})}, "s");
  EXPECT_EQ(n.solve(sum).groups(),
            (Texts{"g0: 3 channels; W1[1] out: 0 3 4; W3[0] in: 0 3 4",
                   "g1: 2 channels; W1[1] out: 1 2; W3[0] in: 1 2; W2[0] in"}));
}

TEST(Coupling, FlattenGivesAChannelAllItsPositions) {
  SmallNet n;
  const auto a = n.conv(n.x({1, 3, 2, 2}), "1", {3, 3, 1, 1});
  EXPECT_EQ(n.solve(n.linear(n.node("Flatten", {a}, "f"), "2", {12, 4})).groups(),
            Texts{"g0: 3 channels; W1[0] out; W2[0] in: 0-3 4-7 8-11"});
}

TEST(Coupling, ReshapeFactorsADimension) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b =
      n.reshape(a, "r", {2, 2, 4});  // the output shows the 2, the contraction eats the 4
  EXPECT_EQ(n.solve(n.linear(b, "2", {4, 3})).groups(),
            Texts{"g0: 4 channels; W1[1] out: 0+4 1+5 2+6 3+7; W2[0] in"});
}

TEST(Coupling, TransposeCarriesADimensionAlong) {
  SmallNet n;
  const auto a = n.conv(n.x({1, 3, 4, 5}), "1", {8, 3, 1, 1});
  const auto t = n.node("Transpose", {a}, "t", {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  EXPECT_EQ(n.solve(n.linear(t, "2", {8, 4})).groups(),
            Texts{"g0: 8 channels; W1[0] out; W2[0] in"});
}

TEST(Coupling, AWeightThatTwoNodesReadTiesThem) {
  SmallNet n;
  const auto x = n.x({2, 8});
  const auto shared = n.floats("W", {8, 8});
  const auto a = n.node("MatMul", {x, shared}, "a");
  const auto b = n.node("MatMul", {a, shared}, "b");
  const Solved solved = n.solve(n.linear(b, "2", {8, 4}));
  EXPECT_EQ(solved.groups(), Texts{});  // its rows meet x, and what they meet its columns make
  EXPECT_EQ(solved.constraint("W[1]"), "graph input \"x\"");
}

TEST(Coupling, IndependentChainsAreIndependentGroups) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.linear(a, "2", {8, 8});
  EXPECT_EQ(n.solve(n.linear(b, "3", {8, 4})).groups(),
            (Texts{"g0: 8 channels; W1[1] out; W2[0] in", "g1: 8 channels; W2[1] out; W3[0] in"}));
}

TEST(Coupling, TwoHalvesThatAreAddedArePairs) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto sum = n.node("Add", {n.slice(a, "l", 0, 4), n.slice(a, "r", 4, 8)}, "s");
  EXPECT_EQ(n.solve(n.linear(sum, "2", {4, 3})).groups(),
            Texts{"g0: 4 channels; W1[1] out: 0+4 1+5 2+6 3+7; W2[0] in"});
}

// Groups are told apart by all their dim classes, however many there are.
TEST(Coupling, HundredsOfPiecesAreAsManyGroups) {
  constexpr int kPieces = 300;
  SmallNet n;
  const auto x = n.x({2, 6});
  std::vector<ValueId> pieces;
  for (int i = 0; i < kPieces; ++i) {
    pieces.push_back(n.linear(x, "p" + std::to_string(i), {6, 2}));
  }
  const auto c = n.node("Concat", pieces, "c", {{"axis", int64_t{1}}});
  const Solved solved = n.solve(n.linear(c, "2", {2 * kPieces, 4}));
  ASSERT_EQ(solved.coupling.groups.size(), size_t{kPieces});
  for (const Group& group : solved.coupling.groups) {
    EXPECT_EQ(group.size, 2);
    EXPECT_EQ(group.members.size(), 2U);
  }
}

TEST(Coupling, ActivationsShareTheDimensionsOfTheirWeights) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto r = n.node("Relu", {a}, "r");
  const Solved solved = n.solve(n.linear(r, "2", {8, 4}));
  EXPECT_EQ(solved.coupling.dim_class_of(a, 1), solved.coupling.dim_class_of(r, 1));
  EXPECT_EQ(solved.coupling.dim_class_of(a, 1),
            solved.coupling.dim_class_of(n.graph.find("W2"), 0));
  EXPECT_NE(solved.coupling.dim_class_of(a, 1), solved.coupling.dim_class_of(a, 0));
  const auto channels = solved.coupling.channels(solved.coupling.dim_class_of(a, 1));
  ASSERT_EQ(channels.size(), 8U);
  EXPECT_EQ(channels[5], (ChannelId{GroupId(0), 5}));
}

TEST(Coupling, TiesAreTheNodesThatNameAGroup) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.linear(n.node("Relu", {a}, "r"), "2", {8, 5});
  const Solved solved = n.solve(n.linear(b, "3", {5, 4}));
  std::string names;
  for (const auto node : solved.coupling.ties(GroupId(0))) names += n.graph.node(node).name + " ";
  EXPECT_EQ(names, "1 r 2 ");
}

TEST(Coupling, AStateTiesWhatItFeedsBack) {
  SmallNet n;
  const auto x = n.x({2, 6});
  const auto state = n.input("state", {2, 8});
  const auto sum = n.node("Add", {n.linear(x, "1", {6, 8}), n.linear(state, "2", {8, 8})}, "s");
  const auto next = n.node("Tanh", {sum}, "next");
  n.output(next);
  CouplingOptions options;
  options.interface.tied = {{{next, 1}, {state, 1}}};
  options.interface.free = {{next, 1}, {state, 1}};
  const Solved solved = n.solve(n.linear(next, "3", {8, 4}), options);
  EXPECT_EQ(solved.groups(), Texts{"g0: 8 channels; W1[1] out; W2[0] in; W2[1] out; W3[0] in"});
  EXPECT_EQ(solved.constraint("W1[0]"), "graph input \"x\"");
}

TEST(Coupling, AFreeInputShrinksWithItsReaders) {
  SmallNet n;
  const auto x = n.x({2, 6});
  CouplingOptions options;
  options.interface.free = {{x, 1}};
  EXPECT_EQ(n.solve(n.linear(n.linear(x, "1", {6, 8}), "2", {8, 4}), options).groups(),
            (Texts{"g0: 6 channels; W1[0] in", "g1: 8 channels; W1[1] out; W2[0] in"}));
}

}  // namespace
}  // namespace parsimony::test
