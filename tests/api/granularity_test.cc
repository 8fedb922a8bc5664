// Granularity per entry: heads of one attention, dimensions within the heads of another.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "parsimony/api/prune.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

/// Attention of four heads of eight dimensions, from X to Y, with names that end in `n`.
std::string attention(const std::string& x, const std::string& y, const std::string& n) {
  std::string text = R"(
    e# = MatMul(X, WQ#)  f# = MatMul(X, WK#)  g# = MatMul(X, WV#)
    eh# = Reshape(e#, hs)  fh# = Reshape(f#, hs)  gh# = Reshape(g#, hs)
    q# = Transpose<perm=[0,2,1,3]>(eh#)
    k# = Transpose<perm=[0,2,3,1]>(fh#)
    v# = Transpose<perm=[0,2,1,3]>(gh#)
    s# = MatMul(q#, k#)
    p# = Softmax<axis=-1>(s#)
    o# = MatMul(p#, v#)
    t# = Transpose<perm=[0,2,1,3]>(o#)
    r# = Reshape(t#, os)
    Y = MatMul(r#, WO#)
  )";
  std::string result;
  for (const char c : text) {
    result += c == '#' ? n : c == 'X' ? x : c == 'Y' ? y : std::string(1, c);
  }
  return result;
}

class TwoAttentions : public ::testing::Test {
 protected:
  void SetUp() override {
    onnx::ModelProto model = model_of(
        "net (float[2,5,6] x) => (float[2,5,6] z)\n"
        "<int64[4] hs = {0,0,4,8}, int64[3] os = {0,0,32}>\n{" +
        attention("x", "y", "1") + attention("y", "z", "2") + "}");
    for (const char* n : {"1", "2"}) {
      for (const char* w : {"WQ", "WK", "WV"}) add_weight(model, std::string(w) + n, "6x32");
      add_weight(model, std::string("WO") + n, "32x6");
    }
    std::ofstream(folder_ / "m.onnx", std::ios::binary) << model.SerializeAsString();
    file_.emplace(folder_ / "m.onnx");
  }

  /// Size and granularity of the group that `weight` makes.
  std::vector<std::string> groups_of(const std::string& config, const std::string& weight) {
    Graph graph = onnx_io::to_graph(*file_);
    const Pruning pruning = plan_pruning(graph, parse_config(config, "c.json"));
    std::vector<std::string> result;
    for (const Group& group : pruning.analysis.coupling.groups) {
      for (const Member& member : group.members) {
        if (graph.weight_of(member.value).name != weight) continue;
        if (member.role != Role::kOut) continue;
        result.push_back(std::to_string(group.size) + " " + group.granularity);
      }
    }
    return result;
  }

  using Groups = std::vector<std::string>;

  TemporaryFolder folder_;
  std::optional<onnx_io::ModelFile> file_;
};

TEST_F(TwoAttentions, MayHaveAGranularityEach) {
  const std::string config = R"([
      {"sparse_ratio": 0.25}, {"op_names": ["WQ1", "WK1", "WV1"], "sparse_ratio": 0.5,
                               "granularity": "head"},
      {"op_names": ["WQ2"], "sparse_ratio": 0.5, "granularity": "head_dim"}])";
  EXPECT_EQ(groups_of(config, "WQ1"), (Groups{"4 head"}));
  EXPECT_EQ(groups_of(config, "WV1"), (Groups{"4 head"}));
  EXPECT_EQ(groups_of(config, "WQ2"), (Groups{"8 head_dim"}));
}

TEST_F(TwoAttentions, AnEntryGoesBeforeTheFile) {
  const std::string config = R"({"granularity": "head", "config_list": [
      {"sparse_ratio": 0.5},
      {"op_names": ["WQ2", "WK2", "WV2"], "sparse_ratio": 0.5, "granularity": "channel"}]})";
  EXPECT_EQ(groups_of(config, "WQ1"), (Groups{"4 head"}));
  EXPECT_EQ(groups_of(config, "WQ2"), (Groups{"8 channel"}));
}

TEST_F(TwoAttentions, AreAsTheNetworkWhereNoEntrySays) {
  EXPECT_EQ(groups_of(R"([{"sparse_ratio": 0.5}])", "WQ1"), (Groups{"8 channel"}));
}

TEST(Granularity, HeadsThatStayAreNamed) {
  onnx::ModelProto model = model_of(
      "net (float[2,5,6] x) => (float[2,5,6] y, float[2,4,5,5] p1)\n"
      "<int64[4] hs = {0,0,4,8}, int64[3] os = {0,0,32}>\n{" +
      attention("x", "y", "1") + "}");
  for (const char* w : {"WQ1", "WK1", "WV1"}) add_weight(model, w, "6x32");
  add_weight(model, "WO1", "32x6");
  const TemporaryFolder folder;
  std::ofstream(folder / "m.onnx", std::ios::binary) << model.SerializeAsString();
  const onnx_io::ModelFile file(folder / "m.onnx");
  Graph graph = onnx_io::to_graph(file);
  const Pruning pruning = plan_pruning(
      graph,
      parse_config(R"({"granularity": "head", "config_list": [{"sparse_ratio": 0.5}]})", "c.json"));
  ASSERT_EQ(pruning.notes.size(), 1U);
  EXPECT_EQ(pruning.notes[0],
            "node \"s1\": no head of it can be removed; parts of each head are, as with "
            "granularity head_dim");
}

/// The smaller shapes are checked at a second batch size, at which the dimension of batch times
/// heads loses more.
TEST(Granularity, HeadsBesideAnOpenBatchGo) {
  const Fixture fixture =
      read_fixture(PARSIMONY_SOURCE_DIR "/tests/operators/attention_batch_heads_head.txt");
  const TemporaryFolder folder;
  std::ofstream(folder / "m.onnx", std::ios::binary) << fixture.model.SerializeAsString();
  const onnx_io::ModelFile file(folder / "m.onnx");
  Graph graph = onnx_io::to_graph(file);
  const Pruning pruning = plan_pruning(
      graph,
      parse_config(R"({"granularity": "head", "config_list": [{"sparse_ratio": 0.5}]})", "c.json"));
  EXPECT_TRUE(pruning.notes.empty()) << pruning.notes.front();
  ASSERT_EQ(pruning.plan.groups.size(), 1U);
  EXPECT_EQ(pruning.plan.groups[0].kept, 1);
  EXPECT_TRUE(pruning.plan.unpruned_dims.size() == 2) << "only the graph's ends are not pruned";
}

}  // namespace
}  // namespace parsimony::test
