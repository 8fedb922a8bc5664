#include "parsimony/speedup/fit_layers.h"

#include <gtest/gtest.h>

#include <memory>

#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"
#include "tests/support/model.h"

namespace parsimony::test {
namespace {

/// "node: answer shift", one line a layer.
std::string told(const Graph& graph, const std::vector<std::string>& fixed = {}) {
  std::string text;
  for (const FitLayer& layer : fit_layers(graph, fixed)) {
    text += key_of(graph, graph.node(layer.node)) + ": " + graph.value(layer.answer).name;
    if (layer.norm != kNone) text += " behind " + key_of(graph, graph.node(layer.norm));
    if (layer.rectified) text += " rectified";
    text += layer.shift == kNone ? "" : ", shift " + graph.weight(layer.shift).name;
    text += layer.shift_sign < 0 ? " subtracted\n" : "\n";
  }
  return text;
}

TEST(FitLayers, AResidualSumIsTheAnswer) {
  const TextModel net(R"(
      net (float[N,4,8,8] x) => (float[N,4,8,8] y)
      {
        a = Conv(x, W1, B1)
        b = Relu(a)
        c = Conv(b, W2)
        d = BatchNormalization(c, gamma, beta, mean, var)
        e = Add(d, x)
        y = Relu(e)
      })",
                      {{"W1", "6x4x1x1"},
                       {"B1", "6"},
                       {"W2", "4x6x1x1"},
                       {"gamma", "4"},
                       {"beta", "4"},
                       {"mean", "4"},
                       {"var", "4"}});
  EXPECT_EQ(told(net.graph()),
            "a: a rectified, shift B1\n"
            "c: e behind d rectified, shift mean subtracted\n");
}

TEST(FitLayers, TheLastLayerBeforeASumMakesUpForBoth) {
  const TextModel net(R"(
      net (float[N,4,8,8] x) => (float[N,4,8,8] y)
      {
        a = Conv(x, W1)
        b = Conv(x, W2)
        y = Add(a, b)
      })",
                      {{"W1", "4x4x1x1"}, {"W2", "4x4x1x1"}});
  EXPECT_EQ(told(net.graph()), "a: a\nb: y\n");
}

TEST(FitLayers, MatMulWithItsBiasBehindIt) {
  const TextModel net(R"(
      net (float[N,5,4] x) => (float[N,5,3] y)
      { a = MatMul(x, W)
        y = Add(B, a) })",
                      {{"W", "4x3"}, {"B", "3"}});
  EXPECT_EQ(told(net.graph()), "a: y, shift B\n");
  EXPECT_EQ(fit_layers(net.graph())[0].out_axis, 1);
}

TEST(FitLayers, AMatrixMayBeTransposedBeforeItsProduct) {
  const TextModel net(R"(
      net (float[N,5,4] x) => (float[N,5,3] y, float[N,5,3] z)
      { t = Transpose<perm = [1, 0]>(W)
        a = MatMul(x, t)
        y = Add(B, a)
        u = Transpose(V)
        b = MatMul(x, u)
        c = MatMul(x, u)
        z = Add(b, c) })",
                      {{"W", "3x4"}, {"B", "3"}, {"V", "3x4"}});
  EXPECT_EQ(told(net.graph()), "a: y, shift B\n") << "two layers read u";
  EXPECT_EQ(fit_layers(net.graph())[0].out_axis, 0);
}

TEST(FitLayers, LeavesOutWhatIsNotALayersOwn) {
  const TextModel net(R"(
      net (float[N,4] x, float[4,4] z) => (float[N,4] y, float[N,4] s)
      {
        a = MatMul(x, W)
        b = MatMul(a, W)
        c = Gemm<alpha=2.0>(b, V)
        d = MatMul(c, z)
        s = Gemm(d, U, B)
        y = Gemm(s, T, B)
      })",
                      {{"W", "4x4"}, {"V", "4x4"}, {"U", "4x4"}, {"T", "4x4"}, {"B", "4"}});
  EXPECT_EQ(told(net.graph()), "s: s\ny: y\n");
  EXPECT_EQ(told(net.graph(), {"U"}), "y: y\n");
}

TEST(FitLayers, APartHasTheNodesThatAreNeededInOrder) {
  const TextModel net(R"(
      net (float[N,4] x) => (float[N,4] y)
      {
        a = Relu(x)
        b = Sigmoid(x)
        c = Relu(a)
        y = Add(b, c)
      })",
                      {});
  const Graph part = part_for(net.graph(), {net.graph().find("c")});
  ASSERT_EQ(part.nodes.size(), 2U);
  EXPECT_EQ(key_of(part, part.nodes[NodeId(0)]), "a");
  EXPECT_EQ(key_of(part, part.nodes[NodeId(1)]), "c");
  EXPECT_EQ(part.outputs, std::vector<ValueId>{net.graph().find("c")});
}

}  // namespace
}  // namespace parsimony::test
