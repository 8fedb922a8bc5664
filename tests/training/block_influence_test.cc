// Influence of blocks against its formula, written out.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/graph/infer.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/training/statistics/measure.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

using training::Batch;
using training::Batches;

Batches batches_of(const at::Tensor& x) {
  return [x](int64_t size) -> training::BatchSource {
    return [x, size, next = int64_t{0}]() mutable -> std::optional<Batch> {
      const int64_t count = std::min(size, x.size(0) - next);
      if (count <= 0) return {};
      next += count;
      return Batch{x.narrow(0, next - count, count), at::zeros({count}, at::kLong)};
    };
  };
}

struct Network {
  Network(const std::string& text,
          const std::vector<std::pair<std::string, std::string>>& weights) {
    onnx::ModelProto model = model_of(text);
    for (const auto& [name, dims] : weights) add_weight(model, name, dims);
    write_file(folder / "net.onnx", model.SerializeAsString());
    file.emplace(folder / "net.onnx");
    graph = onnx_io::to_graph(*file);
    blocks = residual_blocks(graph, infer(graph, choose_probe(graph)));
  }

  /// Of one value, for all of x at once.
  at::Tensor value(const std::string& name, const at::Tensor& x) const {
    at::Tensor found;
    GraphModule net(graph);
    net->observe([&](const Node&, ValueId v, const at::Tensor& tensor) {
      if (graph.value(v).name == name) found = tensor.detach().clone();
    });
    net->forward(x);
    return found.to(at::kDouble);
  }

  TemporaryFolder folder;
  std::optional<onnx_io::ModelFile> file;
  Graph graph;
  std::vector<ResidualBlock> blocks;
};

double influence(const at::Tensor& x, const at::Tensor& y, int64_t axis) {
  const at::Tensor cosine =
      (x * y).sum(axis) / (x.square().sum(axis).sqrt() * y.square().sum(axis).sqrt());
  return 1 - cosine.mean().item<double>();
}

at::Tensor random(at::IntArrayRef dims) {
  return at::randn(dims, at::detail::createCPUGenerator(7));
}

TEST(BlockInfluence, IsTheMeanCosineOfItsEnds) {
  const Network net(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "net (float[N,5,6] x) => (float[N,5,4] y)\n"
      "{ a = MatMul(x, W1)\n b = LayerNormalization(a, g, h)\n c = MatMul(b, W2)\n"
      "  d = Add(a, c)\n e = MatMul(d, W3)\n f = Relu(e)\n k = MatMul(f, W4)\n l = Add(k, d)\n"
      "  y = MatMul(l, W5) }",
      {{"W1", "6x8"},
       {"g", "8"},
       {"h", "8"},
       {"W2", "8x8"},
       {"W3", "8x4"},
       {"W4", "4x8"},
       {"W5", "8x4"}});
  const at::Tensor x = random({70, 5, 6});  // two batches of 32 and a rest
  ASSERT_EQ(net.blocks.size(), 2U);
  const auto found = training::block_influences(net.graph, net.blocks, batches_of(x));
  EXPECT_NEAR(found[0], influence(net.value("a", x), net.value("d", x), 2), 1e-9);
  EXPECT_NEAR(found[1], influence(net.value("d", x), net.value("l", x), 2), 1e-9);
  EXPECT_GT(found[0], 0.01);
}

TEST(BlockInfluence, ARelusNegativePartSaysNothing) {
  const Network net(
      "net (float[N,3,4,4] x) => (float[N,5,4,4] y)\n"
      "{ a = Conv(x, W1)\n b = Conv(a, W2)\n c = Add(b, a)\n d = Relu(c)\n y = Conv(d, W3) }",
      {{"W1", "6x3x1x1"}, {"W2", "6x6x1x1"}, {"W3", "5x6x1x1"}});
  const at::Tensor x = random({9, 3, 4, 4});
  ASSERT_EQ(net.blocks.size(), 1U);
  const auto found = training::block_influences(net.graph, net.blocks, batches_of(x));
  const at::Tensor a = net.value("a", x).clamp_min(0);
  const at::Tensor c = net.value("c", x).clamp_min(0);
  const at::Tensor lengths = a.square().sum(1).sqrt() * c.square().sum(1).sqrt();
  const at::Tensor alike = a.eq(0).all(1).logical_and(c.eq(0).all(1)).to(at::kDouble);
  const at::Tensor cosine = at::where(lengths.gt(0), (a * c).sum(1) / lengths, alike);
  EXPECT_NEAR(found[0], 1 - cosine.mean().item<double>(), 1e-9);
}

TEST(BlockInfluence, ABlockThatOnlyStretchesHasNone) {
  Network net(
      "net (float[N,4] x) => (float[N,3] y)\n"
      "{ a = MatMul(x, W1)\n b = MatMul(a, I)\n c = Add(a, b)\n y = MatMul(c, W2) }",
      {{"W1", "4x2"}, {"I", "2x2"}, {"W2", "2x3"}});
  const std::vector<float> identity = {3, 0, 0, 3};
  for (Weight& weight : net.graph.weights) {
    if (weight.name == "I") weight.data = reinterpret_cast<const std::byte*>(identity.data());
  }
  const auto found = training::block_influences(net.graph, net.blocks, batches_of(random({8, 4})));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0], 0, 1e-7);
}

TEST(BlockInfluence, WantsDataThatFit) {
  const Network net(
      "net (float[N,4] x) => (float[N,3] y)\n"
      "{ a = MatMul(x, W1)\n b = MatMul(a, W3)\n c = Add(a, b)\n y = MatMul(c, W2) }",
      {{"W1", "4x2"}, {"W3", "2x2"}, {"W2", "2x3"}});
  EXPECT_THROW(training::block_influences(net.graph, net.blocks, batches_of(random({8, 5}))),
               ModelError);
  EXPECT_THROW(training::block_influences(net.graph, net.blocks, batches_of(random({0, 4}))),
               ConfigError);
}

}  // namespace
}  // namespace parsimony::test
