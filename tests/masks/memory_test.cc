#include "parsimony/masks/memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "parsimony/masks/cost.h"
#include "tests/masks/small_net.h"

namespace parsimony::test {
namespace {

std::vector<int64_t> bytes_of(const std::vector<MemoryStep>& curve) {
  std::vector<int64_t> bytes;
  for (const MemoryStep& step : curve) bytes.push_back(step.bytes);
  return bytes;
}

/// Half the channels of every group.
AxisMasks halved(const Coupling& coupling) {
  AxisMasks masks = AxisMasks::all_kept(coupling);
  for (auto& keep : masks.keep) std::fill_n(keep.begin(), keep.size() / 2, uint8_t{0});
  return masks;
}

TEST(Memory, LivesFromWhatMakesItToWhatReadsItLast) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto t = n.node("Tanh", {a}, "t");                             // in place of a
  const auto s = n.node("Add", {n.linear(t, "2", {8, 8}), t}, "sum");  // in place of the product
  const Solved solved = n.solve(n.linear(n.node("Flatten", {s}, "f"), "3", {8, 4}));
  const ActivationMemory memory(solved.graph, solved.facts, solved.coupling);
  const AxisMasks all = AxisMasks::all_kept(solved.coupling);
  EXPECT_EQ(bytes_of(memory.curve(all)),
            (std::vector<int64_t>{48 + 64, 64, 64 + 64, 64 + 64, 64, 64 + 32}));
  EXPECT_EQ(memory.peak(all), 128);
  const AxisMasks half = halved(solved.coupling);
  EXPECT_EQ(bytes_of(memory.curve(half)),
            (std::vector<int64_t>{48 + 32, 32, 32 + 32, 32 + 32, 32, 32 + 32}));
  EXPECT_EQ(memory.peak(half), 80);
}

TEST(Memory, WhatIsReadAgainIsNotOverwritten) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto s = n.node("Add", {n.node("Tanh", {a}, "t"), a}, "s");
  const Solved solved = n.solve(n.linear(s, "2", {8, 4}));
  const ActivationMemory memory(solved.graph, solved.facts, solved.coupling);
  EXPECT_EQ(bytes_of(memory.curve(AxisMasks::all_kept(solved.coupling))),
            (std::vector<int64_t>{48 + 64, 64 + 64, 64 + 64, 64 + 32}));
}

/// Nothing runs where the sizes of inputs are all that is asked for, and the inputs need not be
/// there.
TEST(Memory, ArithmeticOnSizesAloneTakesNone) {
  for (const bool scaled : {false, true}) {
    SmallNet n;
    auto y = n.node("Shape", {n.x({64, 64})}, "s");
    if (scaled) y = n.node("Mul", {y, n.integers("k", {2, 3})}, "m");
    const Solved solved = n.solve(y);
    const ActivationMemory memory(solved.graph, solved.facts, solved.coupling);
    const AxisMasks all = AxisMasks::all_kept(solved.coupling);
    EXPECT_TRUE(memory.curve(all).empty());
    EXPECT_EQ(memory.peak(all), 0);
  }
}

/// What weights alone make is not made when the network runs; an input passes through beside it.
TEST(Memory, ConstantsBesideAnInputThatIsAnOutputTakeNone) {
  SmallNet n;
  n.x({64, 64});
  const auto y = n.node("Transpose", {n.floats("W", {8, 4})}, "t");
  const Solved solved = n.solve(y);
  const ActivationMemory memory(solved.graph, solved.facts, solved.coupling);
  EXPECT_EQ(memory.peak(AxisMasks::all_kept(solved.coupling)), 0);
}

TEST(Memory, AConcatWithAConstantIsNoView) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto c = n.node("Concat", {a, n.floats("k", {2, 4})}, "c", {{"axis", int64_t{1}}});
  const Solved solved = n.solve(n.linear(c, "2", {12, 4}));
  const ActivationMemory memory(solved.graph, solved.facts, solved.coupling);
  EXPECT_EQ(bytes_of(memory.curve(AxisMasks::all_kept(solved.coupling))),
            (std::vector<int64_t>{48 + 64, 64 + 96, 96 + 32}));
}

TEST(Memory, OutputsStayAndInputsAreNotOverwritten) {
  SmallNet n;
  const auto x = n.x({2, 6});
  const auto a = n.node("Tanh", {x}, "t");
  n.output(a);
  const Solved solved = n.solve(n.linear(a, "1", {6, 4}));
  const ActivationMemory memory(solved.graph, solved.facts, solved.coupling);
  EXPECT_EQ(bytes_of(memory.curve(AxisMasks::all_kept(solved.coupling))),
            (std::vector<int64_t>{48 + 48, 48 + 32}));
}

TEST(Memory, OfWeightsCountsSharedOnesOnce) {
  SmallNet n;
  const auto w = n.floats("W", {8, 8});
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.node("MatMul", {n.node("MatMul", {a, w}, "b"), w}, "c");
  const Solved solved = n.solve(n.linear(b, "2", {8, 4}));
  const WeightBytes weights(solved.graph, solved.coupling);
  EXPECT_EQ(weights.under(AxisMasks::all_kept(solved.coupling)), 4 * (64 + 48 + 32));
  EXPECT_EQ(weights.under(halved(solved.coupling)), 4 * (16 + 24 + 16));
}

/// A bias that layers of different groups share is written once for each of what they keep.
TEST(Memory, AVectorIsStoredOnceForEachWayOfReadingIt) {
  SmallNet n;
  const auto x = n.x({2, 6});
  const auto b = n.floats("b", {8});
  const auto one = n.node("Add", {n.linear(x, "1", {6, 8}), b}, "a1");
  const auto two = n.node("Add", {n.linear(one, "2", {8, 8}), b}, "a2");
  const auto three = n.node("Add", {n.linear(two, "3", {8, 8}), b}, "a3");
  const auto y = n.linear(three, "4", {8, 4});
  n.output(y);
  finish(n.graph);
  separate_shared_vectors(n.graph);
  const Facts facts = infer(n.graph);
  const Coupling coupling = couple(n.graph, facts);
  ASSERT_EQ(coupling.groups.size(), 3U);
  const WeightBytes weights(n.graph, coupling);
  const CostModel cost(n.graph, facts, coupling);
  const auto elements = [&](const AxisMasks& masks) {
    EXPECT_EQ(weights.under(masks), 4 * cost.under(masks).params);
    return cost.under(masks).params;
  };
  AxisMasks masks = AxisMasks::all_kept(coupling);
  EXPECT_EQ(elements(masks), 48 + 64 + 64 + 32 + 8);
  masks.keep[GroupId(0)][0] = 0;  // one reader of three
  EXPECT_EQ(elements(masks), 42 + 56 + 64 + 32 + (7 + 8));
  masks.keep[GroupId(1)][0] = 0;  // the same channel
  EXPECT_EQ(elements(masks), 42 + 49 + 56 + 32 + (7 + 8));
  masks.keep[GroupId(2)][1] = 0;  // another one
  EXPECT_EQ(elements(masks), 42 + 49 + 49 + 28 + (7 + 7));
}

/// Elements of 4 bits lie two to a byte.
TEST(Memory, SmallElementsShareBytes) {
  SmallNet n;
  const auto w = n.weight("W1", std::vector<int64_t>(48, 1), {6, 8}, DType::kInt4);
  const auto a =
      n.node("MatMul", {n.x({2, 6}), n.node("Cast", {w}, "c", {{"to", int64_t{1}}})}, "a");
  const Solved solved = n.solve(n.linear(a, "2", {8, 4}));
  const WeightBytes weights(solved.graph, solved.coupling);
  EXPECT_EQ(weights.under(AxisMasks::all_kept(solved.coupling)), 24 + 4 * 32);
}

/// x = [2, 6], then tensors of 64, 128, 32, 128 and 16 bytes: two of the large ones never meet, and
/// the small one before them lies where the last will be.
TEST(Memory, ATensorTakesTheLowestPlaceThatIsFreeWhileItLives) {
  SmallNet n;
  const auto a = n.linear(n.x({2, 6}), "1", {6, 8});
  const auto b = n.linear(a, "2", {8, 16});
  const auto c = n.linear(b, "3", {16, 4});
  const auto d = n.linear(c, "4", {4, 16});
  const Solved solved = n.solve(n.linear(d, "5", {16, 2}));
  const ActivationMemory memory(solved.graph, solved.facts, solved.coupling);
  const AxisMasks all = AxisMasks::all_kept(solved.coupling);
  EXPECT_EQ(memory.peak(all), 64 + 128);
  EXPECT_EQ(memory.arena(all), 128 + 64);
}

/// Greedy planning leaves gaps: what is alive at once is a lower bound.
TEST(Memory, AnArenaIsNoSmallerThanThePeak) {
  SmallNet n;
  const auto a = n.linear(n.x({1, 3}), "1", {3, 20});
  const auto b = n.linear(a, "2", {20, 9});
  const auto c = n.linear(b, "3", {9, 12});
  const auto s = n.node("Concat", {c, a}, "s", {{"axis", int64_t{1}}});
  const Solved solved = n.solve(n.linear(s, "4", {32, 5}));
  const ActivationMemory memory(solved.graph, solved.facts, solved.coupling);
  const AxisMasks all = AxisMasks::all_kept(solved.coupling);
  EXPECT_GE(memory.arena(all), memory.peak(all));
  EXPECT_GE(memory.arena(halved(solved.coupling)), memory.peak(halved(solved.coupling)));
  EXPECT_LT(memory.arena(halved(solved.coupling)), memory.arena(all));
}

}  // namespace
}  // namespace parsimony::test
