// Which residual blocks are found in a network.
#include "parsimony/graph/blocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "parsimony/base/files.h"
#include "parsimony/graph/infer.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"
#include "tests/support/residual_network.h"

namespace parsimony::test {
namespace {

using Blocks = std::vector<ResidualBlock>;

struct BlockNetwork {
  TemporaryFolder folder;
  std::unique_ptr<onnx_io::ModelFile> file;
  Graph graph;
  Blocks blocks;

  explicit BlockNetwork(const std::string& path)
      : file(std::make_unique<onnx_io::ModelFile>(path)), graph(onnx_io::to_graph(*file)) {
    blocks = residual_blocks(graph, infer(graph, choose_probe(graph)));
  }
  explicit BlockNetwork(const onnx::ModelProto& model)
      : BlockNetwork(model.SerializeAsString(), 0) {}

 private:
  BlockNetwork(const std::string& bytes, int) {
    write_file(folder / "net.onnx", bytes);
    file = std::make_unique<onnx_io::ModelFile>(folder / "net.onnx");
    graph = onnx_io::to_graph(*file);
    blocks = residual_blocks(graph, infer(graph, choose_probe(graph)));
  }
};

/// Images [1, 4, 6, 6] to [1, 4, 6, 6]; W1, W2 are 3x3 convolutions that keep the shape.
onnx::ModelProto images(const std::string& body, const std::string& outputs = "float[1,4,6,6] y") {
  onnx::ModelProto model =
      model_of("net (float[1,4,6,6] x) => (" + outputs + ")\n{ " + body + " }");
  add_weight(model, "W1", "4x4x3x3");
  add_weight(model, "W2", "4x4x3x3");
  add_weight(model, "t", "1x4x1x1");
  return model;
}

std::string conv(const std::string& y, const std::string& x, const std::string& weight) {
  return y + " = Conv<pads=[1,1,1,1]>(" + x + ", " + weight + ")\n";
}

TEST(ResidualBlocks, ABasicBlock) {
  const BlockNetwork net(images(conv("a", "x", "W1") + "b = Relu(a)\n" + conv("c", "b", "W2") +
                                "d = Add(c, x)\n y = Relu(d)"));
  ASSERT_EQ(net.blocks.size(), 1U);
  const ResidualBlock& block = net.blocks[0];
  EXPECT_EQ(key_of(net.graph, net.graph.node(block.add)), "d");
  EXPECT_EQ(block.kept_input, 1);
  EXPECT_EQ(net.graph.value(block.input).name, "x");
  EXPECT_EQ(net.graph.value(block.output).name, "d");
  EXPECT_EQ(block.nodes.size(), 3U);
  EXPECT_EQ(block.channel_axis, 1);
  EXPECT_TRUE(block.rectified);
}

TEST(ResidualBlocks, AttentionAndMlpBehindNormsAreTwo) {
  const ResidualNetwork random = residual_network(1);
  const BlockNetwork net(random.model);
  ASSERT_EQ(static_cast<int>(net.blocks.size()), random.blocks);
  for (const ResidualBlock& block : net.blocks) {
    EXPECT_EQ(block.channel_axis, 2);
    EXPECT_FALSE(block.rectified);
  }
}

TEST(ResidualBlocks, AsManyAsWereBuilt) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const ResidualNetwork random = residual_network(seed);
    EXPECT_EQ(static_cast<int>(BlockNetwork(random.model).blocks.size()), random.blocks)
        << "seed " << seed;
  }
}

TEST(ResidualBlocks, WhatIsNone) {
  // Each with the reason.
  const std::pair<const char*, std::string> cases[] = {
      {"the branch is read elsewhere", conv("a", "x", "W1") + "b = Relu(a)\n" +
                                           conv("c", "b", "W2") +
                                           "d = Add(c, x)\n e = Relu(d)\n y = Mul(e, b)"},
      {"part of the branch is read elsewhere, and reads x itself as well",
       conv("a", "x", "W1") + "m = Mul(a, x)\n" + conv("c", "m", "W2") +
           "d = Add(c, x)\n e = Relu(d)\n y = Mul(e, a)"},
      {"neither operand comes from the other",
       conv("a", "x", "W1") + conv("b", "x", "W2") + "d = Add(a, b)\n y = Relu(d)"},
      {"the sum is an output", conv("a", "x", "W1") + "y = Add(a, x)"},
      {"the branch has no layer", "a = Sigmoid(x)\n d = Add(a, x)\n" + conv("y", "d", "W1")},
      {"the operand is a table", conv("a", "x", "W1") + "d = Add(a, t)\n y = Relu(d)"},
      {"the shapes are not equal",
       "a = GlobalAveragePool(x)\n b = Conv(a, V)\n d = Add(b, x)\n y = Relu(d)"},
  };
  for (const auto& [why, body] : cases) {
    onnx::ModelProto model = images(body);
    add_weight(model, "V", "4x4x1x1");
    EXPECT_TRUE(BlockNetwork(model).blocks.empty()) << why;
  }
}

TEST(ResidualBlocks, ConcatenationsAreNone) {
  for (const Fixture& fixture : all_fixtures()) {
    if (fixture.name == "densenet") {
      EXPECT_TRUE(BlockNetwork(fixture.model).blocks.empty());
    }
  }
}

TEST(ResidualBlocks, ABranchMayReadWhatDoesNotDependOnItsInput) {
  onnx::ModelProto model = model_of(
      "net (float[1,4,6,6] x, float[1,4,6,6] mask) => (float[1,4,6,6] y)\n{ m = Sigmoid(mask)\n" +
      conv("a", "x", "W1") + "b = Mul(a, m)\n d = Add(x, b)\n" + conv("y", "d", "W1") + "}");
  add_weight(model, "W1", "4x4x3x3");
  const BlockNetwork net(model);
  ASSERT_EQ(net.blocks.size(), 1U);
  EXPECT_EQ(net.blocks[0].nodes.size(), 3U);  // the Sigmoid is the branch's own, too
}

TEST(ResidualBlocks, OfNestedOnesTheInner) {
  const BlockNetwork net(images(conv("a", "x", "W1") + conv("b", "a", "W2") + "c = Add(b, a)\n" +
                                conv("d", "c", "W2") + "e = Add(d, x)\n y = Relu(e)"));
  ASSERT_EQ(net.blocks.size(), 1U);
  EXPECT_EQ(key_of(net.graph, net.graph.node(net.blocks[0].add)), "c");
}

TEST(ResidualBlocks, OfARealResNet) {
  const char* shared = std::getenv("PARSIMONY_TEST_DATA");
  if (shared == nullptr || *shared == '\0') GTEST_SKIP() << "no models";
  const BlockNetwork net(std::string(shared) + "/models/onnx/resnet20_cifar10.onnx");
  EXPECT_EQ(net.blocks.size(), 7U);  // nine, of which two change the width
}

}  // namespace
}  // namespace parsimony::test
