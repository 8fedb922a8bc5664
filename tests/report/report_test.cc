#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "parsimony/api/prune_model.h"
#include "parsimony/graph/infer.h"
#include "parsimony/onnx_io/model.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/report/explain.h"
#include "parsimony/report/inspect.h"
#include "parsimony/report/prune_report.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

/// Two linear layers that share one weight, a softmax over channels between, and sizes that are
/// computed from a shape.
struct Network {
  Network() : file(saved()), graph(onnx_io::to_graph(file)) {
    separate_shared_vectors(graph);
    facts = infer(graph);
    coupling = couple(graph, facts);
  }

  std::string saved() {
    onnx::ModelProto model = model_of(R"(
      agraph (float[2, 6] x) => (float[2, 6] y) {
        a = MatMul (x, w1)
        s = Shape (a)
        b = Softmax (a)
        c = Reshape (b, s)
        d = MatMul (c, w2)
        e = Identity (d)
        f = MatMul (e, w1)
        g = Relu (f)
        y = MatMul (g, w2)
      })");
    add_weight(model, "w1", "6x4");
    add_weight(model, "w2", "4x6");
    const std::string path = folder / "m.onnx";
    std::ofstream out(path, std::ios::binary);
    model.SerializeToOstream(&out);
    return path;
  }

  TemporaryFolder folder;
  onnx_io::ModelFile file;
  Graph graph;
  Facts facts;
  Coupling coupling;
};

TEST(Inspect, ASharedWeightCountsOnce) {
  const Network net;
  const Inspection found = inspect(net.graph, net.facts, net.coupling);
  EXPECT_EQ(found.params, 48);
  EXPECT_EQ(found.nodes[0].params, 24);
  EXPECT_EQ(found.nodes[6].op, "MatMul");
  EXPECT_EQ(found.nodes[6].params, 0);
  EXPECT_EQ(found.nodes[6].weights.size(), 1U);
  EXPECT_EQ(found.macs, 4 * 2 * 6 * 4);
}

TEST(Inspect, ShapeArithmeticIsLeftOutOfTheTable) {
  const Network net;
  const Inspection found = inspect(net.graph, net.facts, net.coupling);
  EXPECT_EQ(to_text(found).find("Shape "), std::string::npos) << to_text(found);
  EXPECT_NE(to_text(found).find("1 node of shape arithmetic not shown"), std::string::npos);
  EXPECT_NE(to_text(found, true).find("Shape "), std::string::npos);
  EXPECT_EQ(Json::parse(to_json(found)).at("nodes").size(), 9U);
}

TEST(Explain, TiesAreThoseOfTheCoupling) {
  const Network net;
  ASSERT_FALSE(net.coupling.groups.empty());
  const Explanation found = explain(net.graph, net.facts, net.coupling);
  for (const GroupId g : net.coupling.groups.ids()) {
    std::vector<std::string> expected;
    for (const NodeId n : net.coupling.ties(g)) {
      const Node& node = net.graph.node(n);
      expected.push_back(label_of(net.graph, node) + " (" + node.op + ")");
    }
    EXPECT_EQ(found.groups[g.index()].ties, expected);
  }
}

TEST(Explain, NamesTheOperatorThatMixes) {
  const Network net;
  const Explanation found = explain(net.graph, net.facts, net.coupling, {.node = "b", .group = {}});
  ASSERT_EQ(found.groups.size(), 1U);
  EXPECT_TRUE(found.groups[0].mixes);
  EXPECT_EQ(found.groups[0].mixes_at, "b");
}

TEST(PruneReport, SaysHowManyGroupsMix) {
  PruneReport report;
  report.groups = {{"g0", 8, 4, true, "channel", {"a"}}, {"g1", 8, 8, true, "channel", {"b"}}};
  EXPECT_NE(to_text(report).find("1 of 2 groups pruned, 12 of 16 channels kept; 1 of them passes"),
            std::string::npos)
      << to_text(report);
}

TEST(PruneReport, SaysWhatBecameOfElements) {
  PruneReport report;
  report.elements = {{"a", "2:4", 16, 8, "2:4", 1, true},
                     {"b", "2:4", 16, 7, "2:4", 0, false},
                     {"c", "level", 10, 3, "", 0, false}};
  const std::string text = to_text(report, true);
  EXPECT_NE(text.find("18 elements set to zero.\n"
                      "Pattern 2:4 along the input axis: holds in 1 of 2 tensors.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("2:4 broken along axis 0"), std::string::npos) << text;
  const Json json = Json::parse(to_json(report));
  EXPECT_EQ(json.at("zeroed"), 18);
  EXPECT_EQ(json.at("elements")[0].at("pattern"),
            (Json{{"is", "2:4"}, {"axis", 1}, {"holds", true}}));
  EXPECT_FALSE(json.at("elements")[2].contains("pattern"));
}

TEST(PruneReport, JsonSurvivesNamesThatAreNotText) {
  PruneReport report;
  report.notes = {"\xff\xfe"};
  EXPECT_NO_THROW(Json::parse(to_json(report)));
}

TEST(PruneReport, AStageThatCameTwiceHasTheSumOfItsTimes) {
  PruneReport report;
  report.timings = {{"prove", 2}, {"edit", 1}, {"prove", 0.5}};
  const Json timings = Json::parse(to_json(report)).at("timings");
  EXPECT_EQ(timings, (Json{{"prove", 2.5}, {"edit", 1.0}}));
}

TEST(PruneReport, LayersAreTheNodesWhoseMatricesMakeTheChannels) {
  const Network net;
  const auto found = outcomes(net.graph, net.coupling, AxisMasks::all_kept(net.coupling));
  ASSERT_EQ(found.size(), net.coupling.groups.size());
  EXPECT_EQ(found[0].kept, found[0].size);
  EXPECT_NE(std::find(found[0].layers.begin(), found[0].layers.end(), "a"), found[0].layers.end());
}

TEST(PruneReport, IsAViewOfAResult) {
  const Network net;
  onnx_io::OnnxModel model(net.file.path());
  PruneRequest request = from_shorthand({.ratio = 0.5});
  request.mixing = Mixing::kAll;
  const PruneResult result = prune_model(model, request);
  const PruneReport report = report_of(result);
  EXPECT_EQ(report.before.params, result.dense.params);
  EXPECT_LT(report.after.params, report.before.params);
  EXPECT_EQ(report.groups.size(), result.analysis.coupling.groups.size());
  EXPECT_EQ(report.proof.not_run, "no engine is available");
  EXPECT_NE(to_text(report).find("parameters"), std::string::npos);
}

}  // namespace
}  // namespace parsimony::test
