#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

TEST(CliExplain, SaysWhatGoesTogetherAndWhatCannotShrink) {
  const Outcome outcome = Workplace().run("explain cnn.onnx");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, R"(g0: 8 channels
  weight  role  indices  read by
  w1[0]   out    8 of 8  c1
  b1[0]   out    8 of 8  c1
  w2[1]   in     8 of 8  c2
  tied by: c1 (Conv), relu (Relu), c2 (Conv)

g1: 6 channels
  weight  role  indices  read by
  w2[0]   out    6 of 6  c2
  w3[1]   in     6 of 6  fc
  tied by: c2 (Conv), pool (GlobalAveragePool), flat (Flatten), fc (Gemm)

cannot shrink  size  why               node
w1[1]             3  graph input "x"
w3[0]             5  graph output "y"
)");
}

TEST(CliExplain, OneNodeByAnyOfItsNames) {
  const Workplace place;
  const Outcome named = place.run("explain cnn.onnx --node c1");
  EXPECT_TRUE(named.out.starts_with("g0: 8 channels")) << named.out;
  EXPECT_EQ(named.out.find("g1:"), std::string::npos);
  EXPECT_NE(named.out.find("w1[1]"), std::string::npos);
  EXPECT_EQ(named.out.find("w3[0]"), std::string::npos);
  EXPECT_EQ(place.run("explain cnn.onnx --node a").out, named.out);
  EXPECT_EQ(place.run("explain cnn.onnx --node w1").out, named.out);
}

TEST(CliExplain, OneGroup) {
  const Outcome outcome = Workplace().run("explain cnn.onnx --group g1");
  EXPECT_TRUE(outcome.out.starts_with("g1: 6 channels")) << outcome.out;
  EXPECT_EQ(outcome.out.find("cannot shrink"), std::string::npos);
}

TEST(CliExplain, VerboseAlsoNamesKernels) {
  const Workplace place;
  EXPECT_EQ(lines_with(place.run("explain cnn.onnx").out, "w1[2]"), "");
  EXPECT_NE(lines_with(place.run("explain -v cnn.onnx").out, "w1[2]"), "");
}

TEST(CliExplain, Json) {
  const Json document = Json::parse(Workplace().run("explain cnn.onnx --json").out);
  EXPECT_EQ(document.at("groups").size(), 2U);
  EXPECT_EQ(document.at("groups").at(0).at("members").at(2), (Json{{"tensor", "w2"},
                                                                   {"axis", 1},
                                                                   {"role", "in"},
                                                                   {"size", 8},
                                                                   {"indices", 8},
                                                                   {"node", "c2"}}));
  EXPECT_EQ(document.at("unpruned_dims").at(1).at("reason"), "graph output \"y\"");
}

/// Every line is one statement that Graphviz knows; what edges join was declared.
void expect_dot(const std::string& text) {
  const std::string string = R"re("(?:[^"\\\n]|\\.)*")re";
  const std::string value = "(?:[a-z-]+|" + string + ")";
  const std::string attributes = R"( \[[a-z]+=)" + value + "(?:, [a-z]+=" + value + R"()*\];)";
  const std::regex declared("  (node|[nv][0-9]+)" + attributes);
  const std::regex edge("  ([nv][0-9]+) -> ([nv][0-9]+);");
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "digraph network {");
  int edges = 0;
  while (std::getline(lines, line) && line != "}") {
    std::smatch found;
    if (std::regex_match(line, found, edge)) {
      ++edges;
      for (const int end : {1, 2}) {
        EXPECT_NE(text.find("  " + found[end].str() + " ["), std::string::npos) << line;
      }
      continue;
    }
    EXPECT_TRUE(std::regex_match(line, declared)) << line;
  }
  EXPECT_EQ(line, "}");
  EXPECT_GT(edges, 0);
}

TEST(CliExplain, DrawsTheNetwork) {
  const Workplace place;
  ASSERT_EQ(place.run("explain cnn.onnx --dot n.dot").code, 0);
  const std::string dot = place.bytes("n.dot");
  expect_dot(dot);
  const auto colour = [&](const std::string& label) {
    std::smatch found;
    const std::regex pattern("label=\"" + label + ".*fillcolor=\"([^\"]*)\"");
    return std::regex_search(dot, found, pattern) ? found[1].str() : std::string();
  };
  EXPECT_EQ(colour("c1"), colour("relu"));
  EXPECT_NE(colour("c1"), colour("c2"));
  EXPECT_EQ(colour("c2"), colour("pool"));
  EXPECT_EQ(colour("fc"), "#e8e8e8");
}

TEST(CliExplain, NamesAreEscapedInThePicture) {
  const Workplace place;
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(place.bytes("cnn.onnx")));
  model.mutable_graph()->mutable_node(0)->set_name("a\"]; b\\N\nc");
  place.write("odd.onnx", model.SerializeAsString());
  ASSERT_EQ(place.run("explain odd.onnx --dot n.dot").code, 0);
  expect_dot(place.bytes("n.dot"));
}

/// The data of a page.
Json page_data(const std::string& page) {
  const size_t begin = page.find('>', page.find("id=\"network-data\"")) + 1;
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(CliExplain, WritesAPage) {
  const Workplace place;
  const Outcome outcome = place.run("explain cnn.onnx --html n.html");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("g0: 8 channels"), std::string::npos) << outcome.out;
  const Json data = page_data(place.bytes("n.html"));
  EXPECT_EQ(data.at("model"), "cnn.onnx");
  EXPECT_EQ(data.at("groups").size(), 2U);
  EXPECT_FALSE(data.contains("asked"));
}

TEST(CliExplain, ThePageShowsWhatPruneWouldRemove) {
  const Workplace place;
  const std::string asked = "--ratio 0.5 --exclude c2 --round-to auto";
  ASSERT_EQ(place.run("explain cnn.onnx --html n.html " + asked).code, 0);
  const Json data = page_data(place.bytes("n.html"));
  EXPECT_EQ(data.at("asked"), asked);
  EXPECT_EQ(data.at("done"), false);
  EXPECT_EQ(data.at("groups").at(0).at("kept"), 4);
  EXPECT_TRUE(data.at("groups").at(0).contains("scores"));
  EXPECT_FALSE(data.at("groups").at(1).contains("kept"));
  EXPECT_FALSE(data.at("groups").at(1).contains("scores"));
  ASSERT_EQ(place.run("prune cnn.onnx -o o.onnx --report r.json --html p.html " + asked).code, 0);
  const Json done = page_data(place.bytes("p.html"));
  EXPECT_EQ(done.at("done"), true);
  EXPECT_EQ(done.at("small"), data.at("small"));
  EXPECT_EQ(done.at("groups"), data.at("groups"));
  const Json report = Json::parse(place.bytes("r.json"));
  EXPECT_EQ(done.at("small").at(0), report.at("params").at("after"));
}

TEST(CliExplain, ThePageTakesAConfigList) {
  const Workplace place;
  place.write("c.json", R"([{"op_names": ["c2"], "sparse_ratio": 0.25}])");
  const Outcome outcome = place.run("explain cnn.onnx --html n.html --config c.json");
  EXPECT_NE(outcome.out.find("sparse_ratio 0.25"), std::string::npos) << outcome.out;
  const Json data = page_data(place.bytes("n.html"));
  EXPECT_EQ(data.at("asked"), "--config c.json");
  EXPECT_FALSE(data.at("groups").at(0).contains("kept"));
  EXPECT_TRUE(data.at("groups").at(1).contains("kept"));
}

TEST(CliExplain, WhatPruneWouldRemoveNeedsAPage) {
  const Outcome outcome = Workplace().run("explain cnn.onnx --ratio 0.5");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--ratio requires --html"), std::string::npos) << outcome.err;
}

TEST(CliExplain, WhatAConfigListAsksOfEveryLayer) {
  const Workplace place;
  place.write("c.json", R"([
      {"op_types": ["Conv"], "sparse_ratio": 0.5, "criterion": "l2", "round_to": 2},
      {"op_names": ["c2"], "exclude": true}])");
  const Outcome outcome = place.run("explain cnn.onnx --config c.json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, R"(layer  type  groups  setting                                     from
c1     Conv  g0      sparse_ratio 0.5, criterion l2, round_to 2  config_list[0]
c2     Conv  g1      excluded                                    config_list[1]
fc     Gemm  -       not named                                   -
)");
}

TEST(CliExplain, WhatAConfigListAsksAsJson) {
  const Workplace place;
  place.write("c.json", R"([
      {"op_names": ["c1"], "budget": {"macs": 500}, "scope": "global"},
      {"op_names": ["c2"], "align": {"module_name": "c1", "dims": [0]}}])");
  const Outcome refused = place.run("explain cnn.onnx --config c.json");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(
      refused.err,
      "parsimony: \"c1\" and \"c2\" are to lose the same channels, but what can be removed of "
      "their output channels is not alike; give them different groups, or align neither\n");
  place.write("c.json", R"([{"op_names": ["c1"], "budget": {"macs": 500}, "scope": "global"}])");
  const Outcome outcome = place.run("explain cnn.onnx --config c.json --json");
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document.at("layers").at(0), Json::parse(R"({
      "layer": "c1", "op": "Conv", "groups": ["g0"], "state": "pruned",
      "setting": {"budget": {"macs": 500.0}, "criterion": "l1", "scope": "global"},
      "entry": "config_list[0]"})"));
  EXPECT_EQ(document.at("layers").at(1).at("state"), "not named");
  EXPECT_EQ(document.at("layers").at(1).at("entry"), nullptr);
}

}  // namespace
}  // namespace parsimony::test
