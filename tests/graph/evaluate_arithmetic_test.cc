#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parsimony/base/errors.h"
#include "tests/graph/evaluation.h"

namespace parsimony {
namespace {

using test::floats;
using test::ints;
using test::kHighest;
using test::kLowest;
using test::kSix;
using test::list;
using test::many;
using test::one;
using test::run;

HostTensor truths(Shape dims, std::vector<int64_t> values) {
  return ints(std::move(dims), std::move(values), DType::kBool);
}

TEST(EvaluateBinary, BroadcastsLikeNumpy) {
  EXPECT_EQ(run("Add", {kSix, list({10, 20, 30})}), ints({2, 3}, {10, 21, 32, 13, 24, 35}));
  EXPECT_EQ(run("Mul", {ints({2, 1}, {1, 2}), list({1, 10})}), ints({2, 2}, {1, 10, 2, 20}));
  EXPECT_EQ(run("Sub", {HostTensor::scalar(1), HostTensor::scalar(3)}), HostTensor::scalar(-2));
  EXPECT_EQ(run("Add", {ints({0, 1}, {}), list({1, 2})}), ints({0, 2}, {}));
  EXPECT_THROW(run("Add", {kSix, list({1, 2})}), ModelError);
  EXPECT_THROW(run("Add", {list({}), list({1, 2})}), ModelError);
}

TEST(EvaluateBinary, IntegerDivisionTruncatesTowardZero) {
  EXPECT_EQ(run("Div", {list({7, -7, 7}), list({2, 2, -2})}), list({3, -3, -3}));
  EXPECT_EQ(run("Div", {list({1}), list({0})}), std::nullopt);
  EXPECT_EQ(run("Div", {list({kLowest}), list({-1})}), std::nullopt);
  EXPECT_EQ(run("Div", {floats({1}, {1}), floats({1}, {0})}), std::nullopt);
}

TEST(EvaluateBinary, ModuloFollowsTheDivisorUnlessFmod) {
  EXPECT_EQ(run("Mod", {list({7, -7, 7, -7}), list({3, 3, -3, -3})}), list({1, 2, -2, -1}));
  EXPECT_EQ(run("Mod", {list({7, -7, 7}), list({3, 3, -3})}, {{"fmod", one(1)}}), list({1, -1, 1}));
  EXPECT_EQ(run("Mod", {list({kLowest}), list({-1})}), list({0}));
  EXPECT_EQ(run("Mod", {list({1}), list({0})}), std::nullopt);
  EXPECT_EQ(run("Mod", {floats({1}, {-7.5}), floats({1}, {2})}, {{"fmod", one(1)}}),
            floats({1}, {-1.5}));
}

TEST(EvaluateBinary, OverflowIsUnknownNotWrong) {
  EXPECT_EQ(run("Add", {list({kHighest}), list({1})}), std::nullopt);
  EXPECT_EQ(run("Sub", {list({kLowest}), list({1})}), std::nullopt);
  EXPECT_EQ(run("Mul", {list({kHighest}), list({2})}), std::nullopt);
  const HostTensor byte = ints({1}, {200}, DType::kUInt8);
  EXPECT_EQ(run("Add", {byte, byte}), std::nullopt);
}

TEST(EvaluateBinary, Powers) {
  EXPECT_EQ(run("Pow", {list({2, -3, 0, -1}), list({10, 3, 0, 1'000'000'001})}),
            list({1024, -27, 1, -1}));
  EXPECT_EQ(run("Pow", {list({2}), list({kHighest})}), std::nullopt);
  EXPECT_EQ(run("Pow", {list({2}), list({-1})}), std::nullopt);
  EXPECT_EQ(run("Pow", {floats({1}, {4}), floats({}, {-0.5})}), floats({1}, {0.5}));
  EXPECT_EQ(run("Pow", {list({3}), floats({}, {2})}), list({9}));
}

TEST(EvaluateBinary, ResultsAreRoundedToTheElementType) {
  const auto sum = run("Add", {floats({}, {0.1F}), floats({}, {0.2F})});
  EXPECT_EQ(sum->floats[0], static_cast<double>(0.1F + 0.2F));
  EXPECT_EQ(run("Add", {floats({}, {2048}, DType::kFloat16), floats({}, {1}, DType::kFloat16)}),
            floats({}, {2048}, DType::kFloat16));
  EXPECT_EQ(run("Add", {floats({}, {256}, DType::kBFloat16), floats({}, {1}, DType::kBFloat16)}),
            floats({}, {256}, DType::kBFloat16));
}

TEST(EvaluateBinary, AlignedOperandsOfOldOpsetsAreLeftAlone) {
  EXPECT_EQ(run("Add", {kSix, list({1, 2})}, {{"broadcast", one(1)}, {"axis", one(0)}}),
            std::nullopt);
}

TEST(EvaluateVariadic, FoldsAllOperands) {
  EXPECT_EQ(run("Max", {list({1, 5}), list({3}), list({2, 2})}), list({3, 5}));
  EXPECT_EQ(run("Min", {list({1, 5})}), list({1, 5}));
  EXPECT_EQ(run("Sum", {list({1}), list({2}), list({3})}), list({6}));
  EXPECT_EQ(run("Mean", {floats({1}, {1}), floats({1}, {2})}), floats({1}, {1.5}));
}

TEST(EvaluateUnary, IntegersAndNumbers) {
  EXPECT_EQ(run("Neg", {list({1, -2})}), list({-1, 2}));
  EXPECT_EQ(run("Neg", {list({kLowest})}), std::nullopt);
  EXPECT_EQ(run("Abs", {list({-3, 3})}), list({3, 3}));
  EXPECT_EQ(run("Sign", {list({-3, 0, 3})}), list({-1, 0, 1}));
  EXPECT_EQ(run("Floor", {floats({2}, {1.5, -1.5})}), floats({2}, {1, -2}));
  EXPECT_EQ(run("Ceil", {floats({2}, {1.5, -1.5})}), floats({2}, {2, -1}));
  EXPECT_EQ(run("Round", {floats({4}, {0.5, 1.5, 2.5, -2.6})}), floats({4}, {0, 2, 2, -3}));
  EXPECT_EQ(run("Sqrt", {floats({}, {64})}), floats({}, {8}));
  EXPECT_EQ(run("Sqrt", {list({64})}), std::nullopt);
  EXPECT_EQ(run("Cos", {floats({2}, {0, 1})}), floats({2}, {1, std::cos(1.F)}));
  EXPECT_EQ(run("Sin", {floats({2}, {0, 1})}), floats({2}, {0, std::sin(1.F)}));
  EXPECT_EQ(run("Tanh", {floats({2}, {0, 1})}), floats({2}, {0, std::tanh(1.F)}));
  EXPECT_EQ(run("Reciprocal", {floats({}, {4})}), floats({}, {0.25}));
  EXPECT_EQ(run("Reciprocal", {floats({}, {0})}), std::nullopt);
  EXPECT_EQ(run("Exp", {floats({}, {0})}), floats({}, {1}));
  EXPECT_EQ(run("Log", {floats({}, {1})}), floats({}, {0}));
  EXPECT_EQ(run("Not", {truths({2}, {0, 1})}), truths({2}, {1, 0}));
  EXPECT_EQ(run("Not", {floats({}, {1})}), std::nullopt);
}

TEST(EvaluateCompare, GivesBooleans) {
  EXPECT_EQ(run("Equal", {list({1, -1}), HostTensor::scalar(-1)}), truths({2}, {0, 1}));
  EXPECT_EQ(run("Less", {list({1, 2, 3}), list({2})}), truths({3}, {1, 0, 0}));
  EXPECT_EQ(run("LessOrEqual", {list({1, 2, 3}), list({2})}), truths({3}, {1, 1, 0}));
  EXPECT_EQ(run("Greater", {floats({2}, {0.5, 2}), floats({}, {1})}), truths({2}, {0, 1}));
  EXPECT_EQ(run("GreaterOrEqual", {list({1, 2, 3}), list({2})}), truths({3}, {0, 1, 1}));
  const HostTensor left = truths({4}, {0, 0, 1, 1});
  const HostTensor right = truths({4}, {0, 1, 0, 1});
  EXPECT_EQ(run("And", {left, right}), truths({4}, {0, 0, 0, 1}));
  EXPECT_EQ(run("Or", {left, right}), truths({4}, {0, 1, 1, 1}));
  EXPECT_EQ(run("Xor", {left, right}), truths({4}, {0, 1, 1, 0}));
}

TEST(EvaluateCompare, LargeIntegersAreNotComparedAsDoubles) {
  EXPECT_EQ(run("Equal", {list({kHighest}), list({kHighest - 1})}), truths({1}, {0}));
}

TEST(EvaluateWhere, ChoosesAndBroadcasts) {
  EXPECT_EQ(run("Where", {truths({2, 1}, {1, 0}), list({1, 2}), HostTensor::scalar(9)}),
            ints({2, 2}, {1, 2, 9, 9}));
  EXPECT_EQ(run("Where", {truths({}, {1}), list({1}), floats({1}, {2})}), std::nullopt);
}

TEST(EvaluateCast, ConvertsOrDeclines) {
  EXPECT_EQ(run("Cast", {floats({3}, {1.9, -1.9, 0})}, {{"to", one(7)}}), list({1, -1, 0}));
  EXPECT_EQ(run("Cast", {list({2, 0})}, {{"to", one(9)}}), truths({2}, {1, 0}));
  EXPECT_EQ(run("Cast", {list({kHighest})}, {{"to", one(6)}}), ints({1}, {-1}, DType::kInt32));
  EXPECT_EQ(run("Cast", {list({16'777'217})}, {{"to", one(1)}}), floats({1}, {16'777'216}));
  EXPECT_EQ(run("Cast", {list({65'504})}, {{"to", one(10)}}),
            floats({1}, {65'504}, DType::kFloat16));
  EXPECT_EQ(run("Cast", {floats({1}, {1e30})}, {{"to", one(7)}}), std::nullopt);
  EXPECT_EQ(
      run("Cast", {floats({1}, {std::numeric_limits<double>::quiet_NaN()})}, {{"to", one(7)}}),
      std::nullopt);
  EXPECT_EQ(run("Cast", {list({1})}, {{"to", one(8)}}), std::nullopt);
  EXPECT_EQ(run("Cast", {list({1})}), std::nullopt);
}

TEST(EvaluateReduce, ReducesAxes) {
  EXPECT_EQ(run("ReduceSum", {kSix}), ints({1, 1}, {15}));
  EXPECT_EQ(run("ReduceProd", {list({2, 3, 4})}, {{"keepdims", one(0)}}), HostTensor::scalar(24));
  EXPECT_EQ(run("ReduceSum", {kSix, list({0})}), ints({1, 3}, {3, 5, 7}));
  EXPECT_EQ(run("ReduceMax", {kSix}, {{"axes", many({-1})}, {"keepdims", one(0)}}), list({2, 5}));
  EXPECT_EQ(run("ReduceMin", {kSix}, {{"axes", many({0})}, {"keepdims", one(0)}}), list({0, 1, 2}));
  EXPECT_EQ(run("ReduceMean", {floats({2}, {1, 2})}), floats({1}, {1.5}));
  EXPECT_EQ(run("ReduceMean", {list({1, 2})}), list({1}));
}

TEST(EvaluateReduce, EmptyAxesReduceAllOrNothing) {
  EXPECT_EQ(run("ReduceSum", {kSix, list({})}, {{"noop_with_empty_axes", one(1)}}), kSix);
  EXPECT_EQ(run("ReduceSum", {kSix, list({})}), ints({1, 1}, {15}));
}

TEST(EvaluateReduce, RefusesWhatHasNoResult) {
  EXPECT_EQ(run("ReduceProd", {list({kHighest, 2})}), std::nullopt);
  EXPECT_EQ(run("ReduceMax", {list({})}), std::nullopt);
  EXPECT_THROW(run("ReduceSum", {kSix, list({2})}), ModelError);
  EXPECT_THROW(run("ReduceSum", {kSix, list({0, -2})}), ModelError);
  EXPECT_THROW(run("ReduceSum", {kSix, floats({1}, {0})}), ModelError);
  EXPECT_EQ(run("ReduceSum", {ints({2}, {100, 100}, DType::kInt8)}), std::nullopt);
}

TEST(EvaluateCumSum, RunsBothWays) {
  const HostTensor axis = HostTensor::scalar(1);
  EXPECT_EQ(run("CumSum", {kSix, axis}), ints({2, 3}, {0, 1, 3, 3, 7, 12}));
  EXPECT_EQ(run("CumSum", {kSix, axis}, {{"exclusive", one(1)}}), ints({2, 3}, {0, 0, 1, 0, 3, 7}));
  EXPECT_EQ(run("CumSum", {kSix, axis}, {{"reverse", one(1)}}), ints({2, 3}, {3, 3, 2, 12, 9, 5}));
  EXPECT_EQ(run("CumSum", {kSix, HostTensor::scalar(0)}), ints({2, 3}, {0, 1, 2, 3, 5, 7}));
  EXPECT_EQ(run("CumSum", {list({kHighest, 1}), HostTensor::scalar(0)}), std::nullopt);
}

}  // namespace
}  // namespace parsimony
