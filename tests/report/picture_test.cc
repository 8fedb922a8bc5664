#include "parsimony/report/network/picture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "parsimony/graph/infer.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/report/html/page.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

/// Three linear layers; the hidden channels are two groups, the last layer makes the output.
class Pictured : public testing::Test {
 protected:
  explicit Pictured(const std::string& name = "hidden")
      : file_(saved(name)), graph_(onnx_io::to_graph(file_)) {
    separate_shared_vectors(graph_);
    facts_ = infer(graph_);
    coupling_ = couple(graph_, facts_);
  }

  NetworkPicture picture(const std::optional<PictureDecision>& decision = std::nullopt) const {
    return picture_of(graph_, facts_, coupling_, {}, decision);
  }

  /// Group 0 loses its two lowest channels.
  PictureDecision decision() const {
    PictureDecision made{AxisMasks::all_kept(coupling_), {}, "--ratio 0.25", false};
    made.scores.resize(coupling_.groups.size());
    made.scores[GroupId(0)] = {4, 1, 8, 7, 6, 2, 5, 3};
    made.masks.keep[GroupId(0)] = {1, 0, 1, 1, 1, 0, 1, 1};
    return made;
  }

  static const PictureBox& named(const NetworkPicture& picture, const std::string& name) {
    for (const PictureBox& box : picture.boxes) {
      if (box.name == name) return box;
    }
    throw std::out_of_range(name);
  }

  std::string saved(const std::string& name) {
    onnx::ModelProto model = model_of(R"(
      agraph (float[2, 6] x) => (float[2, 5] y) {
        a = MatMul (x, w1)
        b = Relu (a)
        c = MatMul (b, w2)
        s = Shape (c)
        d = Reshape (c, s)
        y = MatMul (d, w3)
      })");
    model.mutable_graph()->mutable_node(0)->set_name(name);
    add_weight(model, "w1", "6x8");
    add_weight(model, "w2", "8x4");
    add_weight(model, "w3", "4x5");
    const std::string path = folder_ / "m.onnx";
    std::ofstream out(path, std::ios::binary);
    model.SerializeToOstream(&out);
    return path;
  }

  TemporaryFolder folder_;
  onnx_io::ModelFile file_;
  Graph graph_;
  Facts facts_;
  Coupling coupling_;
};

TEST_F(Pictured, HasInputsNodesAndOutputs) {
  const NetworkPicture found = picture();
  std::vector<std::string> names;
  for (const PictureBox& box : found.boxes) names.push_back(box.name + ":" + box.op);
  EXPECT_EQ(names, (std::vector<std::string>{"x:", "hidden:MatMul", "b:Relu", "c:MatMul",
                                             "d:Reshape", "y:MatMul", "y:"}));
  EXPECT_EQ(found.lines.size(), 6U);
  EXPECT_FALSE(found.small);
}

TEST_F(Pictured, SaysWhatABoxMakesAndReads) {
  const NetworkPicture found = picture();
  const PictureBox& c = named(found, "c");
  EXPECT_EQ(c.groups_in, std::vector<int>{0});
  EXPECT_EQ(c.groups_out, std::vector<int>{1});
  EXPECT_TRUE(c.layer);
  EXPECT_EQ(c.params, 32);
  EXPECT_EQ(c.macs, 64);
  EXPECT_EQ(c.channels, 4);
  EXPECT_EQ(c.shape, "[2, 4]");
  EXPECT_FALSE(named(found, "b").layer);
  EXPECT_TRUE(named(found, "b").place.joined);
}

TEST_F(Pictured, SaysWhyALayerCannotShrink) {
  const NetworkPicture found = picture();
  const PictureBox& last = found.boxes[5];
  EXPECT_TRUE(last.groups_out.empty());
  ASSERT_EQ(last.obstacles.size(), 1U);
  EXPECT_EQ(last.obstacles[0].axis, "w3[1]");
  EXPECT_EQ(last.obstacles[0].pinned, 5);
  EXPECT_EQ(last.obstacles[0].reason, "graph output \"y\"");
}

TEST_F(Pictured, AGroupKnowsItsLayersAndWhatAChannelCosts) {
  const NetworkPicture found = picture();
  ASSERT_EQ(found.groups.size(), 2U);
  const PictureGroup& group = found.groups[0];
  EXPECT_EQ(group.boxes, (std::vector<int>{1, 2, 3}));
  ASSERT_EQ(group.members.size(), 2U);
  EXPECT_EQ(group.members[0].box, 1);
  EXPECT_EQ(group.members[0].axis, "w1[1]");
  EXPECT_EQ(group.members[0].role, "out");
  EXPECT_EQ(group.members[1].box, 3);
  EXPECT_EQ(group.members[1].role, "in");
  EXPECT_EQ(group.channel.params, 6 + 4);
  EXPECT_EQ(group.channel.macs, 2 * (6 + 4));
  EXPECT_FALSE(group.scores);
}

TEST_F(Pictured, ShowsADecision) {
  const NetworkPicture found = picture(decision());
  ASSERT_TRUE(found.small);
  EXPECT_EQ(found.dense.params - found.small->params, 20);
  const PictureGroup& group = found.groups[0];
  EXPECT_EQ(group.kept, 6);
  EXPECT_EQ(group.saved.params, 20);
  EXPECT_EQ(group.saved.macs, 40);
  EXPECT_EQ(found.groups[1].saved.params, 0);
  EXPECT_EQ(named(found, "b").small_shape, "[2, 6]");
  EXPECT_EQ(named(found, "b").kept, 6);
  EXPECT_EQ(named(found, "c").small_shape, "");
}

TEST_F(Pictured, ShowsHowScoresAreSpread) {
  const NetworkPicture found = picture(decision());
  ASSERT_TRUE(found.groups[0].scores);
  const ScoreHistogram& scores = *found.groups[0].scores;
  EXPECT_EQ(scores.least, 1);
  EXPECT_EQ(scores.median, 4.5);
  EXPECT_EQ(scores.most, 8);
  EXPECT_EQ(std::accumulate(scores.removed.begin(), scores.removed.end(), 0), 2);
  EXPECT_EQ(std::accumulate(scores.kept.begin(), scores.kept.end(), 0), 6);
  EXPECT_EQ(scores.removed.front(), 1);
  EXPECT_EQ(scores.kept.back(), 1);
  EXPECT_FALSE(found.groups[1].scores);
}

TEST_F(Pictured, ScoresThatAreNoNumbersAreLeftOut) {
  PictureDecision made = decision();
  made.scores[GroupId(0)].assign(8, std::numeric_limits<double>::infinity());
  made.scores[GroupId(0)][3] = 2;
  const NetworkPicture found = picture(made);
  EXPECT_EQ(found.groups[0].scores->most, 2);
  EXPECT_EQ(found.groups[0].scores->kept.front(), 1);
}

TEST_F(Pictured, AsJsonWithoutWhatIsUsual) {
  const Json dense = Json::parse(to_json(picture()));
  EXPECT_FALSE(dense.contains("small"));
  EXPECT_EQ(dense.at("boxes").at(6).contains("op"), false);
  EXPECT_EQ(dense.at("groups").at(0).contains("kept"), false);
  EXPECT_EQ(dense.at("boxes").at(5).at("obstacles"),
            Json::parse(R"([["w3[1]", 5, 5, "graph output \"y\""]])"));
  const Json pruned = Json::parse(to_json(picture(decision())));
  EXPECT_EQ(pruned.at("small"), (Json{80, 160}));
  EXPECT_EQ(pruned.at("asked"), "--ratio 0.25");
  EXPECT_EQ(pruned.at("groups").at(0).at("kept"), 6);
  EXPECT_EQ(pruned.at("groups").at(0).at("saved"), (Json{20, 40}));
  EXPECT_EQ(pruned.at("groups").at(1).contains("saved"), false);
}

class Hostile : public Pictured {
 protected:
  Hostile() : Pictured("</script><img src=x onerror=alert(1)>\"'\xff") {}
};

TEST_F(Hostile, NamesAreNoMarkup) {
  NetworkPicture found = picture();
  found.model = "<b>m</b>.onnx";
  const std::string page = to_html(found);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_EQ(page.find("</script><"), std::string::npos);
  const size_t begin = page.find('>', page.find("id=\"network-data\"")) + 1;
  const Json data = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data.at("boxes").at(1).at("name"),
            "</script><img src=x onerror=alert(1)>\"'\xef\xbf\xbd");
  EXPECT_EQ(data.at("model"), "<b>m</b>.onnx");
}

TEST_F(Pictured, APageAllowsOnlyItsOwnScript) {
  const std::string page = to_html(picture());
  EXPECT_NE(page.find("default-src 'none'; script-src 'nonce-"), std::string::npos);
  EXPECT_EQ(page.find("http"), page.find("http-equiv"));
}

}  // namespace
}  // namespace parsimony::test
