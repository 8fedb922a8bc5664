#include "parsimony/pruners/layers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/graph/builder.h"

namespace parsimony {
namespace {

using test::Builder;

TEST(Layers, AreNodesThatApplyAMatrixToData) {
  Builder b;
  const ValueId x = b.input("x", {1, 4});
  const ValueId w = b.floats("w", {4, 4});
  const ValueId y = b.node("MatMul", {x, w}, "linear");
  b.node("MatMul", {y, x}, "attention");
  b.node("Relu", {y}, "relu");
  b.node("MatMul", {w, w}, "weights_only");
  b.node("Gather", {w, b.input("ids", {3}, DType::kInt64)}, "embedding");
  const ValueId shape = b.weight<int64_t>("shape", {1, 2, 3, 4}, {2, 2}, DType::kInt64);
  b.node("Gather", {shape, b.graph.find("ids")}, "table");
  finish(b.graph);
  const Layers layers(b.graph);
  std::vector<std::string> found;
  for (const NodeId n : b.graph.nodes.ids()) {
    if (layers.contains(n)) found.push_back(b.graph.nodes[n].name);
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::string>{"embedding", "linear"}));
}

TEST(Layers, SeeThroughNodesThatComputeOnWeights) {
  Builder b;
  const ValueId w = b.floats("w", {4, 4});
  const ValueId scale = b.floats("scale", {1});
  const ValueId real = b.node("DequantizeLinear", {w, scale}, "real");
  const ValueId turned = b.node("Transpose", {real}, "turned");
  const ValueId x = b.input("x", {1, 4});
  b.node("MatMul", {x, turned}, "first");
  b.node("MatMul", {x, turned}, "second");
  finish(b.graph);
  const Layers layers(b.graph);
  EXPECT_FALSE(layers.contains(NodeId(0)));
  EXPECT_TRUE(layers.contains(NodeId(2)));
  EXPECT_EQ(layers.weights(NodeId(2)), (std::vector<ValueId>{w}));
  EXPECT_EQ(layers.using_weight_of(NodeId(0)), (std::vector<NodeId>{NodeId(2), NodeId(3)}));
  EXPECT_EQ(layers.using_weight_of(NodeId(2)), (std::vector<NodeId>{NodeId(2)}));
}

TEST(Layers, MayBeFusedOrQuantised) {
  Builder b;
  const ValueId x = b.input("x", {4, 4});
  const ValueId w = b.floats("w", {4, 4});
  const ValueId s = b.floats("s", {1});
  b.node("FusedMatMul", {x, w}, "fused");
  b.graph.nodes.back().domain = "com.microsoft";
  b.node("QLinearMatMul", {x, s, s, w, s, s, s, s}, "quantised");
  b.node("MatMul", {x, w}, "another");
  b.graph.nodes.back().domain = "a.vendor";
  finish(b.graph);
  const Layers layers(b.graph);
  EXPECT_EQ(layers.weights(NodeId(0)), (std::vector<ValueId>{w}));
  EXPECT_EQ(layers.weights(NodeId(1)), (std::vector<ValueId>{w}));
  EXPECT_FALSE(layers.contains(NodeId(2)));
}

TEST(Layers, OfRecurrentNodesHaveTwoMatrices) {
  Builder b;
  const ValueId w = b.floats("w", {1, 8, 3});
  const ValueId r = b.floats("r", {1, 8, 2});
  b.add("LSTM", {b.input("x", {5, 1, 3}), w, r, b.floats("b", {1, 16})}, {b.value("y")});
  finish(b.graph);
  EXPECT_EQ(Layers(b.graph).weights(NodeId(0)), (std::vector<ValueId>{w, r}));
}

TEST(Layers, HaveNoEndWithoutALimit) {
  Builder b;
  ValueId w = b.floats("w", {2, 2});
  for (int i = 0; i < 10000; ++i) w = b.node("Neg", {w}, "neg" + std::to_string(i));
  b.node("MatMul", {b.input("x", {1, 2}), w}, "y");
  finish(b.graph);
  const Layers layers(b.graph);
  EXPECT_FALSE(
      layers.contains(NodeId(10000)));  // too far from its weight to be told apart from data
  EXPECT_TRUE(layers.using_weight_of(NodeId(0)).empty());
}

}  // namespace
}  // namespace parsimony
