// Rows times kernel is the layer: the operand is what the kernel is multiplied with.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parsimony/torch_io/executor/linear_rows.h"

namespace parsimony::torch_io {
namespace {

struct Geometry {
  std::vector<int64_t> x, w, stride, dilation, pads;  ///< pads as ONNX has them: begins, then ends
  int64_t group;
};

class ConvOperand : public ::testing::TestWithParam<Geometry> {};

TEST_P(ConvOperand, TimesTheKernelIsTheConvolution) {
  const Geometry& g = GetParam();
  const at::Generator generator = at::detail::createCPUGenerator(1);
  const at::Tensor x = at::randn(g.x, generator, at::kDouble);
  const at::Tensor w = at::randn(g.w, generator, at::kDouble);
  Node node;
  node.op = "Conv";
  node.opset = 13;
  node.attributes = {
      {"strides", g.stride}, {"dilations", g.dilation}, {"pads", g.pads}, {"group", g.group}};
  const size_t rank = g.stride.size();
  std::vector<int64_t> around;
  for (size_t i = rank; i-- > 0;) {
    around.push_back(g.pads[i]);
    around.push_back(g.pads[rank + i]);
  }
  const std::vector<int64_t> none(rank, 0);
  const at::Tensor wanted = at::convolution(at::constant_pad_nd(x, around, 0), w, {}, g.stride,
                                            none, g.dilation, false, none, g.group);
  const at::Tensor rows = conv_operand(node, x, g.w);
  const at::Tensor kernels = w.reshape({g.group, g.w[0] / g.group, -1});
  // [g, n·p, o] -> [n, (g o), ..p]
  at::Tensor found = at::bmm(rows, kernels.transpose(1, 2));
  found = found.reshape({g.group, g.x[0], -1, g.w[0] / g.group}).permute({1, 0, 3, 2});
  EXPECT_LT((found.reshape_as(wanted) - wanted).abs().max().item<double>(), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(
    Geometries, ConvOperand,
    ::testing::Values(
        Geometry{{2, 3, 7, 9}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
        Geometry{{2, 4, 9, 8}, {6, 2, 3, 2}, {2, 3}, {2, 1}, {2, 0, 1, 1}, 2},
        Geometry{{3, 4, 6, 6}, {4, 1, 3, 3}, {2, 2}, {1, 1}, {0, 1, 2, 0}, 4},
        Geometry{{2, 3, 11}, {5, 3, 4}, {2}, {2}, {3, 1}, 1},
        Geometry{{1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1, 1, 2}, {0, 1, 0, 1, 1, 0}, 1}));

TEST(MatrixOperand, RowsAlongTheContractedAxis) {
  const at::Tensor x = at::arange(12, at::kDouble).reshape({3, 4});
  Node node;
  node.op = "Gemm";
  node.opset = 13;
  EXPECT_TRUE(at::equal(matrix_operand(node, x, 0), x.reshape({1, 3, 4})));
  EXPECT_TRUE(at::equal(matrix_operand(node, x, 1), x.t().reshape({1, 4, 3})));
  node.attributes = {{"transA", int64_t{1}}, {"transB", int64_t{1}}};
  EXPECT_TRUE(at::equal(matrix_operand(node, x, 0), x.t().reshape({1, 4, 3})));
  EXPECT_TRUE(at::equal(matrix_operand(node, x, 1), x.reshape({1, 3, 4})));
}

TEST(ConvTransposeOperand, RowsAreTheGroupsChannels) {
  const at::Tensor x = at::arange(2 * 4 * 3, at::kDouble).reshape({2, 4, 3});
  Node node;
  node.op = "ConvTranspose";
  node.opset = 13;
  node.attributes = {{"group", int64_t{2}}};
  const at::Tensor rows = conv_transpose_operand(node, x);
  ASSERT_EQ(rows.sizes(), (std::vector<int64_t>{2, 6, 2}));
  for (int64_t g = 0; g < 2; ++g) {
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t p = 0; p < 3; ++p) {
        EXPECT_TRUE(at::equal(rows[g][n * 3 + p], x[n].narrow(0, 2 * g, 2).select(1, p)));
      }
    }
  }
}

}  // namespace
}  // namespace parsimony::torch_io
