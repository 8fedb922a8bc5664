#include "parsimony/onnx_io/graph_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

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

TEST(GraphFile, RefusesWhatIsNotOfOnnx) {
  Graph graph;
  graph.format = "torchscript";
  EXPECT_THROW(to_onnx(graph), UnsupportedError);
}

}  // namespace
}  // namespace parsimony::onnx_io
