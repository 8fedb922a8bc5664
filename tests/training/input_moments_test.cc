// Moments of what layers read, against sums written out.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "parsimony/api/measure.h"
#include "parsimony/torch_io/machine.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/training/statistics/batches.h"
#include "tests/graph/builder.h"

namespace parsimony::training {
namespace {

using test::Attributes;
using test::Builder;

/// Sums over what matrices of a graph read.
class Moments {
 public:
  explicit Moments(const Graph& graph, const std::string& matrix = "w")
      : forward_(engine_, graph, test::no_facts(graph), Coupling(), {.inputs = {matrix}}) {}

  Moments& see(const at::Tensor& x) {
    const MeasuredRun run = {values_of(std::vector<at::Tensor>{x}), x.size(0)};
    forward_.add({&run, 1});
    return *this;
  }
  Moments& see_together(const std::vector<at::Tensor>& batches) {
    std::vector<MeasuredRun> runs;
    for (const at::Tensor& x : batches) {
      runs.push_back({values_of(std::vector<at::Tensor>{x}), x.size(0)});
    }
    torch_io::use_cores(2);
    forward_.add(runs);
    torch_io::use_cores(1);
    return *this;
  }
  std::map<std::string, InputMoments> result() const {
    Statistics statistics;
    forward_.finish(statistics);
    return statistics.inputs;
  }
  int64_t bytes() const { return forward_.bytes(); }

 private:
  torch_io::TorchEngine engine_;
  ForwardStatistics forward_;
};

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
    Moments sums(b.graph);
    for (const at::Tensor& batch : batches) sums.see(batch);
    return sums.result().at("w");
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
  const at::Tensor x = at::randn({2, 6, 7, 5});
  const at::Tensor w = at::randn({4, 3, 3, 2}, at::kDouble);
  const at::Tensor y = at::conv2d(x.to(at::kDouble), w, {}, {2, 1}, {1, 0}, {1, 2}, 2);
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
    const double expected = y.select(1, out).square().sum().item<double>();
    EXPECT_NEAR(v.dot(found.second.middleCols(out / 2 * 18, 18) * v), expected, 1e-6 * expected);
  }
}

TEST(InputMoments, OfAMatrixThatSeveralLayersReadAddUp) {
  Builder b;
  const ValueId x = b.input("x", {});
  const ValueId w = b.floats("w", {2, 2});
  const ValueId h = b.node("MatMul", {x, w}, "h");
  b.node("MatMul", {h, w}, "y");
  finish(b.graph);
  const auto moments = Moments(b.graph).see(matrix({1, 0}, 2)).result();
  Moments one_by_one(b.graph);
  std::vector<at::Tensor> batches;
  for (int i = 0; i < 7; ++i) {
    batches.push_back(at::randn({5, 2}, at::detail::createCPUGenerator(i)));
    one_by_one.see(batches.back());
  }
  EXPECT_EQ(Moments(b.graph).see_together(batches).result().at("w").second,
            one_by_one.result().at("w").second)
      << "how many run at once changes no bit";
  EXPECT_EQ(moments.at("w").second, (Eigen::MatrixXd{{2, 1}, {1, 1}})) << "x is (1, 0), h (1, 1)";
}

TEST(InputMoments, MeasureWhatWasAskedForAndReached) {
  const OneLayer net("MatMul", {2, 3});
  EXPECT_TRUE(Moments(net.b.graph, "v").see(matrix({1, 2}, 2)).result().empty());
  EXPECT_TRUE(Moments(net.b.graph).result().empty());
}

TEST(InputMoments, OfManyColumnsAreSummedInBlocks) {
  constexpr int64_t kColumns = 1601;  // three blocks of different widths
  const at::Tensor x = at::arange(3 * kColumns, at::kDouble).remainder(7).reshape({3, kColumns});
  const Eigen::MatrixXd found =
      OneLayer("Gemm", {kColumns, 2}).of({x.to(at::kFloat), x.to(at::kFloat)}).second;
  const at::Tensor expected = 2 * x.t().mm(x);
  EXPECT_EQ(found,
            Eigen::Map<const Eigen::MatrixXd>(expected.data_ptr<double>(), kColumns, kColumns));
}

TEST(InputMoments, TakeNoMoreMemoryForMoreSamples) {
  const OneLayer net("MatMul", {8, 3});
  Moments sums(net.b.graph);
  sums.see(at::ones({1, 8}));
  const int64_t bytes = sums.bytes();
  EXPECT_EQ(bytes, 8 * 8 * 8);
  sums.see(at::ones({1000, 8}));
  EXPECT_EQ(sums.bytes(), bytes);
}

TEST(InputMoments, OfLargeConvolutionsAreSummedInParts) {
  // 150 samples of 128 x 128 have windows of more elements than are held at a time.
  const OneLayer net("Conv", {1, 1, 3, 3});
  const at::Tensor x = at::randn({150, 1, 128, 128});
  const InputMoments found = net.of({x});
  EXPECT_EQ(found.rows, 150 * 126 * 126);
  const at::Tensor windows = x.unfold(2, 3, 1).unfold(3, 3, 1).reshape({-1, 9}).to(at::kDouble);
  const at::Tensor expected = at::matmul(windows.t(), windows).contiguous();
  EXPECT_TRUE(found.second.isApprox(
      Eigen::Map<const Eigen::MatrixXd>(expected.data_ptr<double>(), 9, 9), 1e-5));
}

}  // namespace
}  // namespace parsimony::training
