// Channels that contribute nothing are found and removed.
#include <gtest/gtest.h>

#include "parsimony/masks/slice_values.h"
#include "tests/masks/small_net.h"

namespace parsimony::test {
namespace {

std::vector<float> column_zero(int64_t rows, int64_t columns, int64_t zero) {
  std::vector<float> elements(static_cast<size_t>(rows * columns), 1);
  for (int64_t r = 0; r < rows; ++r) elements[static_cast<size_t>(r * columns + zero)] = 0;
  return elements;
}

std::string kept(const Solved& solved, const std::vector<ElementMask>& zeros = {}) {
  AxisMasks masks = AxisMasks::all_kept(solved.coupling);
  const int found = remove_zero_channels(solved.graph, solved.coupling, zeros, masks);
  std::string text = std::to_string(found) + ":";
  for (const auto& keep : masks.keep) {
    text += ' ';
    for (const uint8_t bit : keep) text += bit != 0 ? '1' : '0';
  }
  return text;
}

/// x W1 -> `op` -> W2, where column 1 of W1 is zero.
Solved net(SmallNet& n, const std::string& op) {
  const auto w = n.weight("W1", column_zero(2, 3, 1), {2, 3}, DType::kFloat32);
  const auto a = n.node("MatMul", {n.x({4, 2}), w}, "a");
  return n.solve(n.linear(n.node(op, {a}, "m"), "2", {3, 2}));
}

TEST(ZeroChannels, AChannelThatIsZeroEverywhereGoes) {
  SmallNet n;
  EXPECT_EQ(kept(net(n, "Relu")), "1: 101");
}

TEST(ZeroChannels, AChannelThatBecomesAConstantStays) {
  SmallNet n;
  EXPECT_EQ(kept(net(n, "Sigmoid")), "0: 111");
}

TEST(ZeroChannels, ABiasKeepsAChannelAlive) {
  SmallNet n;
  const auto w = n.weight("W1", column_zero(2, 3, 1), {2, 3}, DType::kFloat32);
  const auto a = n.node("Gemm", {n.x({4, 2}), w, n.floats("b", {3})}, "a");
  const Solved solved = n.solve(n.linear(a, "2", {3, 2}));
  EXPECT_EQ(kept(solved), "0: 111");
  EXPECT_EQ(kept(solved, {{"b", {3}, {1, 0, 1}}}), "1: 101");
}

TEST(ZeroChannels, AChannelThatNobodyReadsGoesWhateverItHolds) {
  SmallNet n;
  const auto a = n.node("Sigmoid", {n.linear(n.x({4, 2}), "1", {2, 3})}, "m");
  EXPECT_EQ(kept(n.solve(n.linear(a, "2", {3, 2})), {{"W2", {3, 2}, {1, 1, 1, 1, 0, 0}}}),
            "1: 110");
}

TEST(ZeroChannels, AChannelThatASumReadsStays) {
  SmallNet n;
  const auto a = n.linear(n.x({4, 2}), "1", {2, 3});
  n.output(n.node("ReduceSum", {a, n.integers("axes", {-1})}, "s"));
  EXPECT_EQ(kept(n.solve(n.linear(a, "2", {3, 2})), {{"W2", {3, 2}, {1, 1, 1, 1, 0, 0}}}),
            "0: 111");
}

TEST(ZeroChannels, OneChannelStaysOfADimension) {
  SmallNet n;
  const Solved solved = net(n, "Relu");
  EXPECT_EQ(kept(solved, {{"W1", {2, 3}, {0, 0, 0, 0, 0, 0}}}).substr(0, 2), "2:");
}

}  // namespace
}  // namespace parsimony::test
