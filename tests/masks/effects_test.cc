// What becomes of a removed channel on its way: the roles of weights, where it is zero, where what
// remains depends on it.
#include <gtest/gtest.h>

#include "tests/masks/small_net.h"

namespace parsimony::test {
namespace {

/// x W1 -> `op` -> W2
Texts after(const std::string& op, Attributes attributes = {}) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  return n.solve(n.linear(n.node(op, {a}, "m", std::move(attributes)), "2", {8, 4})).groups();
}

TEST(Effects, ZeroStaysZeroBehindOddFunctions) {
  for (const char* op : {"Relu", "Tanh", "Neg", "Abs", "Sqrt", "Sign"}) {
    EXPECT_EQ(after(op), Texts{"g0: 8 channels; W1[1] out; W2[0] in"}) << op;
  }
}

TEST(Effects, ZeroBecomesAConstantBehindOthers) {
  for (const char* op : {"Sigmoid", "Exp", "Cos", "Softplus"}) {
    EXPECT_EQ(after(op), Texts{"g0: 8 channels, not zero without its weights; W1[1] out; W2[0] in"})
        << op;
  }
}

TEST(Effects, ASoftmaxMixesItsChannels) {
  EXPECT_EQ(after("Softmax"),
            Texts{"g0: 8 channels, mixed at m, outcomes for 2, not zero without its weights, "
                  "summed without a weight; W1[1] out; W2[0] in"});
}

TEST(Effects, ASoftmaxOverAnotherAxisDoesNotMix) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 5, 6}), "1", {6, 8});
  const auto s = n.node("Softmax", {a}, "m", {{"axis", int64_t{1}}});
  EXPECT_EQ(n.solve(n.linear(s, "2", {8, 4})).groups(),
            Texts{"g0: 8 channels, not zero without its weights; W1[1] out; W2[0] in"});
}

TEST(Effects, ALayerNormalizationMixesAndItsParametersFollow) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b =
      n.node("LayerNormalization", {a, n.floats("gamma", {8}), n.floats("beta", {8})}, "m");
  EXPECT_EQ(n.solve(n.linear(b, "2", {8, 4})).groups(),
            Texts{"g0: 8 channels, mixed at m, summed without a weight; W1[1] out; gamma[0] out; "
                  "beta[0] out; W2[0] in"});
}

TEST(Effects, AMeanOverChannelsMixesThemASumDoesNot) {
  const Attributes last{{"axes", std::vector<int64_t>{-1}}};
  for (const auto& [op, requested] :
       {std::pair("ReduceMean", "g0: 8 channels, mixed at m, summed without a weight; W1[1] out"),
        std::pair("ReduceSum", "g0: 8 channels, summed without a weight; W1[1] out")}) {
    SmallNet n;
    const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
    const bool sum = std::string(op) == "ReduceSum";
    const auto m =
        sum ? n.node(op, {a, n.integers("axes", {-1})}, "m") : n.node(op, {a}, "m", last);
    EXPECT_EQ(n.solve(m).groups(), Texts{requested}) << op;
  }
}

TEST(Effects, ASumOfWhatIsNotZeroMixes) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto s = n.node("Sigmoid", {a}, "s");
  EXPECT_EQ(n.solve(n.node("ReduceSum", {s, n.integers("axes", {-1})}, "m")).groups(),
            Texts{"g0: 8 channels, mixed at m, not zero without its weights, summed without a "
                  "weight; W1[1] out"});
}

TEST(Effects, AProductOfActivationsSumsWithoutAWeight) {
  SmallNet n;
  const auto a = n.linear(n.x({5, 6}), "1", {6, 8});
  const auto t = n.node("Transpose", {a}, "t");
  EXPECT_EQ(n.solve(n.node("MatMul", {a, t}, "y")).groups(),
            Texts{"g0: 8 channels, summed without a weight; W1[1] out"});
}

TEST(Effects, AGateStopsWhatIsNotZero) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto silu = n.node("Mul", {a, n.node("Sigmoid", {a}, "s")}, "m");
  const Solved solved = n.solve(n.linear(silu, "2", {8, 4}));
  EXPECT_FALSE(solved.coupling.groups[GroupId(0)].zero);  // at s it is a half
  EXPECT_FALSE(solved.coupling.groups[GroupId(0)].mixes);
}

TEST(Effects, ADivisorBelongsToItsChannelButMayNotBecomeZero) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto d = n.node("Div", {a, n.floats("d", {8})}, "d1");
  EXPECT_EQ(n.solve(n.linear(d, "2", {8, 4})).groups(),
            Texts{"g0: 8 channels; W1[1] out; d[0] with; W2[0] in"});
}

TEST(Effects, DividingByAChannelThatIsGoneSpoilsWhatRemains) {
  SmallNet n;
  const auto x = n.x({2, 6});
  const auto d = n.node("Div", {n.linear(x, "1", {6, 8}), n.linear(x, "2", {6, 8})}, "d");
  const Solved solved = n.solve(n.linear(d, "3", {8, 4}));
  ASSERT_EQ(solved.coupling.groups.size(), 1U);
  EXPECT_TRUE(solved.coupling.groups[GroupId(0)].mixes);
  EXPECT_EQ(solved.coupling.groups[GroupId(0)].mixes_at, "d");
}

TEST(Effects, RolesReachThroughArithmeticOfWeights) {
  SmallNet n;
  const auto t = n.node("Transpose", {n.floats("W1", {8, 6})}, "t");
  const auto a = n.node("MatMul", {n.x({2, 6}), t}, "a");
  EXPECT_EQ(n.solve(n.linear(a, "2", {8, 4})).groups(),
            Texts{"g0: 8 channels; W1[0] out; W2[0] in"});
}

TEST(Effects, ARecurrenceConsumesWhatItProduces) {
  SmallNet n;
  const auto y = n.value("y");
  n.add("RNN", {n.x({5, 2, 6}), n.floats("W", {1, 4, 6}), n.floats("R", {1, 4, 4})}, {y},
        {{"hidden_size", int64_t{4}}});
  EXPECT_EQ(n.solve(n.linear(y, "2", {4, 3})).groups(),
            Texts{"g0: 4 channels; W[1] out; R[1] out; R[2] in; W2[0] in"});
}

TEST(Effects, PaddingWithAnythingButZeroIsNotZero) {
  for (const float value : {0.0F, 1.0F}) {
    SmallNet n;
    const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
    const auto v = n.weight("v", std::vector<float>{value}, {}, DType::kFloat32);
    const auto p = n.node("Pad", {a, n.integers("pads", {0, 0, 0, 2}), v}, "p");
    const Solved solved = n.solve(n.linear(p, "2", {10, 4}));
    EXPECT_EQ(solved.coupling.groups[GroupId(0)].zero, value == 0) << value;
  }
}

}  // namespace
}  // namespace parsimony::test
