#include "parsimony/onnx_io/graph_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"
#include "tests/support/model.h"

namespace parsimony::onnx_io {
namespace {

TEST(GraphFile, IsTheSameNetwork) {
  const parsimony::test::TemporaryFolder folder;
  int written = 0;
  for (const parsimony::test::Fixture& fixture : parsimony::test::all_fixtures()) {
    std::string bytes;
    fixture.model.SerializeToString(&bytes);
    write_file(folder / "before.onnx", bytes);
    const ModelFile before(folder / "before.onnx");
    const Graph graph = to_graph(before);
    try {
      write_file(folder / "after.onnx", to_onnx(graph));
    } catch (const UnsupportedError&) {
      continue;
    }
    ++written;
    const ModelFile after(folder / "after.onnx");
    const Graph again = to_graph(after);
    ASSERT_EQ(again.nodes.size(), graph.nodes.size()) << fixture.name;
    for (const NodeId n : graph.nodes.ids()) {
      EXPECT_EQ(again.nodes[n].op, graph.nodes[n].op) << fixture.name;
      EXPECT_EQ(again.nodes[n].attributes, graph.nodes[n].attributes) << fixture.name;
    }
    EXPECT_EQ(again.inputs.size(), graph.inputs.size()) << fixture.name;
    EXPECT_EQ(again.outputs.size(), graph.outputs.size()) << fixture.name;
  }
  EXPECT_GT(written, 200);
}

/// The results of both branches come from outside; one is a weight.
TEST(GraphFile, BodiesHandOnWhatTheyDoNotCompute) {
  parsimony::test::TextModel model(
      "net (bool p, float[2,3] x) => (float[2,3] y) { h = Relu(x) "
      "y = If(p) <then_branch = t () => (float[2,3] u) { u = Identity(h) }, "
      "else_branch = e () => (float[2,3] v) { v = Neg(h) }> }",
      {{"W", "2x3"}});
  Graph graph = model.graph();
  const Weight weight = graph.weights.back();
  Value value{.name = "W", .dtype = weight.dtype, .declared = weight.dims};
  value.weight = WeightId(graph.weights.size() - 1);
  graph.bodies[BodyId(0)].outputs = {graph.find("h")};
  graph.bodies[BodyId(1)].outputs = {graph.values.push_back(std::move(value))};
  const parsimony::test::TemporaryFolder folder;
  write_file(folder / "after.onnx", to_onnx(graph));
  const ModelFile after(folder / "after.onnx");
  const Graph again = to_graph(after);
  ASSERT_EQ(again.bodies.size(), 2U);
  for (const Body& body : again.bodies) {
    const NodeId copy = again.value(body.outputs.at(0)).producer;
    ASSERT_NE(copy, kNone);
    const std::string& name = again.value(again.node(copy).inputs.at(0)).name;
    EXPECT_EQ(name, body.attribute == "then_branch" ? "h" : "W");
  }
}

TEST(GraphFile, RefusesOutputsInBodies) {
  parsimony::test::TextModel model(
      "net (bool p, float[2,3] x) => (float[2,3] y) { "
      "y = If(p) <then_branch = t () => (float[2,3] u) { u = Relu(x) }, "
      "else_branch = e () => (float[2,3] v) { v = Neg(x) }> }",
      {});
  EXPECT_NO_THROW(to_onnx(model.graph()));
  model.graph().outputs = {model.graph().find("y::then_branch::u")};
  EXPECT_THROW(to_onnx(model.graph()), UnsupportedError);
}

TEST(GraphFile, RefusesWhatIsNotOfOnnx) {
  Graph graph;
  graph.format = "torchscript";
  EXPECT_THROW(to_onnx(graph), UnsupportedError);
}

}  // namespace
}  // namespace parsimony::onnx_io
