// Moments of what layers read, against sums written out.
#include "parsimony/training/statistics/input_moments.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/graph/builder.h"

namespace parsimony::training {
namespace {

using test::Attributes;
using test::Builder;

std::map<std::string, InputMoments> moments_of(const InputMomentSums& sums) {
  Statistics statistics;
  sums.finish(statistics);
  return statistics.inputs;
}

struct OneLayer {
  Builder b;
  ValueId x = kNone;

  OneLayer(const std::string& op, Shape dims, Attributes attributes = {},
           bool weight_first = false) {
    x = b.input("x", {});
    const ValueId w = b.floats("w", std::move(dims));
    const std::vector<ValueId> inputs =
        weight_first ? std::vector<ValueId>{w, x} : std::vector<ValueId>{x, w};
    b.node(op, inputs, "y", std::move(attributes));
    finish(b.graph);
  }

  InputMoments of(const std::vector<at::Tensor>& batches) const {
    InputMomentSums sums(b.graph, {"w"});
    for (const at::Tensor& batch : batches) sums.see(x, batch);
    return moments_of(sums).at("w");
  }
};

at::Tensor matrix(std::initializer_list<double> numbers, int64_t columns) {
  return at::tensor(std::vector<double>(numbers), at::kDouble)
      .reshape({-1, columns})
      .to(at::kFloat);
}

TEST(InputMoments, OfAMatrixAddUpOverBatches) {
  const OneLayer net("MatMul", {2, 3});
  const InputMoments found = net.of({matrix({1, 2, 3, 4}, 2), matrix({0, 1}, 2)});
  EXPECT_EQ(found.rows, 3);
  EXPECT_EQ(found.second, (Eigen::MatrixXd{{10, 14}, {14, 21}}));
}

TEST(InputMoments, CountEveryPosition) {
  const OneLayer net("MatMul", {2, 3});
  EXPECT_EQ(net.of({matrix({1, 2, 3, 4}, 2).reshape({1, 2, 2})}).rows, 2);
}

TEST(InputMoments, FollowTheSideOnWhichTheWeightStands) {
  const Eigen::MatrixXd rows{{10, 14}, {14, 20}};
  const Eigen::MatrixXd columns{{5, 11}, {11, 25}};
  const at::Tensor x = matrix({1, 2, 3, 4}, 2);
  EXPECT_EQ(OneLayer("Gemm", {2, 3}).of({x}).second, rows);
  EXPECT_EQ(OneLayer("Gemm", {3, 2}, {{"transB", int64_t{1}}}).of({x}).second, rows);
  EXPECT_EQ(OneLayer("Gemm", {2, 3}, {{"transA", int64_t{1}}}).of({x}).second, columns);
  EXPECT_EQ(OneLayer("MatMul", {3, 2}, {}, true).of({x}).second, columns);
  EXPECT_EQ(OneLayer("Gemm", {3, 2}, {}, true).of({x}).second, columns);
  EXPECT_EQ(OneLayer("Gemm", {3, 2}, {{"transB", int64_t{1}}}, true).of({x}).second, rows);
}

TEST(InputMoments, OfAConvolutionAreThoseOfItsWindows) {
  // Against the convolution itself: for any kernel, Σ y² = wᵀ M w.
  at::manual_seed(3);
  const at::Tensor x = at::randn({2, 6, 7, 5}, at::kDouble);
  const at::Tensor w = at::randn({4, 3, 3, 2}, at::kDouble);
  const at::Tensor y = at::conv2d(x, w, {}, {2, 1}, {1, 0}, {1, 2}, 2);
  const OneLayer net("Conv", {4, 3, 3, 2},
                     {{"group", int64_t{2}},
                      {"strides", std::vector<int64_t>{2, 1}},
                      {"pads", std::vector<int64_t>{1, 0, 1, 0}},
                      {"dilations", std::vector<int64_t>{1, 2}}});
  const InputMoments found = net.of({x});
  ASSERT_EQ(found.second.rows(), 18);
  ASSERT_EQ(found.second.cols(), 36);
  EXPECT_EQ(found.rows, 2 * y.size(2) * y.size(3));
  for (int64_t out = 0; out < 4; ++out) {
    const at::Tensor kernel = w[out].flatten().contiguous();
    const Eigen::Map<const Eigen::VectorXd> v(kernel.data_ptr<double>(), 18);
    const double wanted = y.select(1, out).square().sum().item<double>();
    EXPECT_NEAR(v.dot(found.second.middleCols(out / 2 * 18, 18) * v), wanted, 1e-9 * wanted);
  }
}

TEST(InputMoments, OfAMatrixThatSeveralLayersReadAddUp) {
  Builder b;
  const ValueId x = b.input("x", {});
  const ValueId w = b.floats("w", {2, 2});
  const ValueId h = b.node("MatMul", {x, w}, "h");
  b.node("MatMul", {h, w}, "y");
  finish(b.graph);
  InputMomentSums sums(b.graph, {"w"});
  sums.see(x, matrix({1, 0}, 2));
  sums.see(h, matrix({0, 3}, 2));
  EXPECT_EQ(moments_of(sums).at("w").second, (Eigen::MatrixXd{{1, 0}, {0, 9}}));
}

TEST(InputMoments, MeasureWhatWasAskedForAndReached) {
  const OneLayer net("MatMul", {2, 3});
  InputMomentSums others(net.b.graph, {"v"});
  others.see(net.x, matrix({1, 2}, 2));
  EXPECT_TRUE(moments_of(others).empty());
  EXPECT_TRUE(moments_of(InputMomentSums(net.b.graph, {"w"})).empty());
}

TEST(InputMoments, TakeNoMoreMemoryForMoreSamples) {
  const OneLayer net("MatMul", {8, 3});
  InputMomentSums sums(net.b.graph, {"w"});
  sums.see(net.x, at::ones({1, 8}));
  const int64_t bytes = sums.bytes();
  EXPECT_EQ(bytes, 8 * 8 * 8);
  sums.see(net.x, at::ones({1000, 8}));
  EXPECT_EQ(sums.bytes(), bytes);
}

}  // namespace
}  // namespace parsimony::training
