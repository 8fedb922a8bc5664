// A linear layer as rows times a matrix: the same as the layer.
#include "parsimony/torch_io/executor/linear_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/base/errors.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/tensor.h"
#include "tests/support/model.h"

namespace parsimony::test {
namespace {

at::Tensor noise(std::vector<int64_t> dims) {
  return at::randn(dims, at::detail::createCPUGenerator(3), at::kFloat);
}

/// Runs `y = LAYER(x, W)` as a layer and as rows.
void compare(const std::string& layer, const std::vector<int64_t>& dims,
             const std::string& weight_dims, bool transposed = false) {
  std::string sizes;
  for (const int64_t size : dims) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
  const TextModel model("net (float[" + sizes + "] x) => (float y) { y = " + layer + "(x, W) }",
                        {{"W", weight_dims}});
  const Graph& graph = model.graph();
  const Node& node = graph.nodes[NodeId(0)];
  const at::Tensor x = noise(dims);
  const at::Tensor weight = torch_io::to_tensor(graph.weights[WeightId(0)]);
  GraphModule module(graph);
  const at::Tensor y = module->forward(x).detach();
  const int64_t groups = groups_of_layer(node);
  const bool convolves = node.op.starts_with("Conv");
  const at::Tensor wanted = answer_rows(y, convolves ? 1 : -1, groups);
  const at::Tensor rows = linear_rows(node, x, weight);
  at::Tensor matrix = transposed ? weight.t() : weight;
  if (node.op == "ConvTranspose") {
    // [(g i) o ..k] as [g o (i k)]
    matrix = weight.reshape({groups, weight.size(0) / groups, weight.size(1), -1}).transpose(1, 2);
  }
  const at::Tensor found =
      at::matmul(rows, matrix.reshape({groups, -1, rows.size(2)}).transpose(1, 2));
  ASSERT_EQ(found.sizes(), wanted.sizes()) << layer;
  EXPECT_TRUE(at::allclose(found, wanted, 1e-4, 1e-4)) << layer;
  if (!convolves) return;
  // Every second position of the first spatial axis, every third of the others.
  std::vector<int64_t> steps(dims.size() - 2, 3);
  steps[0] = 2;
  at::Tensor some = y;
  for (size_t i = 0; i < steps.size(); ++i) {
    some = some.slice(static_cast<int64_t>(i) + 2, 0, some.size(static_cast<int64_t>(i) + 2),
                      steps[i]);
  }
  const at::Tensor thinned = at::matmul(linear_rows(node, x, weight, steps),
                                        matrix.reshape({groups, -1, rows.size(2)}).transpose(1, 2));
  const at::Tensor few = answer_rows(some, 1, groups);
  ASSERT_EQ(thinned.sizes(), few.sizes()) << layer;
  EXPECT_TRUE(at::allclose(thinned, few, 1e-4, 1e-4)) << layer;
}

TEST(LinearRows, ConvolutionsOfEveryKind) {
  compare("Conv", {2, 3, 7, 7}, "5x3x3x3");
  compare("Conv<pads=[1,0,2,1], strides=[2,1]>", {2, 3, 7, 6}, "5x3x3x2");
  compare("Conv<pads=[2,2,2,2], dilations=[2,3]>", {2, 3, 9, 9}, "4x3x3x2");
  compare("Conv<group=3, pads=[1,1,1,1]>", {2, 6, 5, 5}, "9x2x3x3");
  compare("Conv<group=4>", {2, 4, 5, 5}, "8x1x3x3");
  compare("Conv<auto_pad=\"SAME_LOWER\", strides=[2,2]>", {1, 2, 6, 7}, "3x2x3x3");
  compare("Conv<pads=[1,1], strides=[2]>", {2, 3, 9}, "4x3x3");
  compare("Conv<strides=[1,2,1]>", {1, 2, 4, 5, 4}, "3x2x2x2x2");
}

TEST(LinearRows, TransposedConvolutionsOfEveryKind) {
  compare("ConvTranspose", {2, 3, 5, 5}, "3x4x3x3");
  compare("ConvTranspose<strides=[2,3], pads=[1,0,2,1]>", {2, 3, 5, 4}, "3x4x3x2");
  compare("ConvTranspose<strides=[2,2], dilations=[2,1]>", {2, 3, 5, 4}, "3x4x2x3");
  compare("ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>", {1, 2, 4, 4},
          "2x3x3x3");
  compare("ConvTranspose<group=2, strides=[2]>", {2, 4, 7}, "4x3x4");
  compare("ConvTranspose<group=4, pads=[3,3]>", {2, 4, 7}, "4x1x2");
}

TEST(LinearRows, MatrixProducts) {
  compare("Gemm<transB=1>", {4, 6}, "3x6");
  compare("Gemm", {4, 6}, "6x3", true);
  compare("Gemm<transA=1>", {6, 4}, "6x3", true);
  compare("MatMul", {2, 5, 6}, "6x3", true);
}

TEST(LinearRows, RefusesWhatIsNoLinearLayer) {
  const TextModel model("net (float[2,3] x) => (float[2,3] y) { y = Mul(x, W) }", {{"W", "3"}});
  EXPECT_THROW(linear_rows(model.graph().nodes[NodeId(0)], noise({2, 3}), noise({3})),
               UnsupportedError);
}

}  // namespace
}  // namespace parsimony::test
