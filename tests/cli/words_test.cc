// Words leave a language model in a file: rows of its embedding, and columns of its logits.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;
using Weights = std::vector<std::pair<std::string, std::string>>;

const std::string kModel = R"(agraph (int64[2, 5] ids, int64[2, 5] at) => (float[2, 5, 40] logits) {
    e = Gather(table, ids)
    p = Gather(places, at)
    x = Add(e, p)
    h = MatMul(x, w)
    r = Relu(h)
    o = MatMul(r, head)
    logits = Add(o, bias) })";
const Weights kWeights{
    {"table", "40x6"}, {"places", "8x6"}, {"w", "6x10"}, {"head", "10x40"}, {"bias", "40"}};

class CliWords : public testing::Test {
 protected:
  Outcome prune(const std::string& text, const Weights& weights, const std::string& ids,
                const std::string& options = "") {
    onnx::ModelProto model = model_of(text);
    for (const auto& [name, dims] : weights) add_weight(model, name.c_str(), dims.c_str());
    save(model, place_ / "m.onnx");
    place_.write("ids.txt", ids);
    return place_.run(
        "prune m.onnx -o s.onnx --force --plan p.json --report r.json "
        "--keep-tokens ids:ids.txt " +
        options);
  }

  int64_t left() const { return report().at("params").at("after"); }
  bool is_proven() const { return report().at("proof").at("holds"); }
  Json report() const { return Json::parse(place_.bytes("r.json")); }

  Workplace place_;
};

TEST_F(CliWords, LeaveTheTableAndTheHead) {
  const Outcome outcome = prune(kModel, kWeights, "3 39\n7\n0 12\n");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(left(), 5 * 6 + 8 * 6 + 6 * 10 + 10 * 5 + 5);
  EXPECT_TRUE(is_proven()) << outcome.out;
  EXPECT_EQ(Json::parse(place_.bytes("s.onnx.kept_token_ids.json")), Json({0, 3, 7, 12, 39}));
  const Json words = Json::parse(place_.bytes("p.json")).at("words");
  EXPECT_EQ(words, Json::parse(R"([{"input": "ids", "size": 40, "keep": [0, 3, 7, 12, 39]}])"));
  EXPECT_EQ(place_.run("verify m.onnx s.onnx --plan p.json").code, 0);
  EXPECT_EQ(place_.run("apply m.onnx --plan p.json -o t.onnx").code, 0);
  EXPECT_EQ(place_.bytes("t.onnx"), place_.bytes("s.onnx"));
}

TEST_F(CliWords, LeaveWithChannels) {
  const Outcome outcome = prune(kModel, kWeights, "[3, 39, 7, 0]", "--ratio 0.5");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(left(), 4 * 3 + 8 * 3 + 3 * 5 + 5 * 4 + 4);
  EXPECT_TRUE(is_proven()) << outcome.out;
}

TEST_F(CliWords, LeaveATiedTableOnce) {
  const Outcome outcome = prune(R"(agraph (int32[2, 5] ids) => (float[2, 5, 40] logits) {
      e = Gather(table, ids)
      h = MatMul(e, w)
      r = Relu(h)
      t = Transpose<perm = [1, 0]>(table)
      logits = MatMul(r, t) })",
                                {{"table", "40x6"}, {"w", "6x6"}}, "1 2 3 5 8 13 21 34");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(left(), 8 * 6 + 36);
  EXPECT_TRUE(is_proven()) << outcome.out;
}

TEST_F(CliWords, WhoseNumbersAreReadOtherwiseStay) {
  std::string text = kModel;
  text.replace(text.find("e = Gather"), 10,
               "z = Equal(ids, pad)\n f = Cast<to = 1>(z)\n e = Gather");
  text.replace(text.find("=> (float[2, 5, 40] logits)"), 27,
               "=> (float[2, 5, 40] logits, float[2, 5] f) <int64 pad = {0}>");
  const Outcome outcome = prune(text, kWeights, "1 2");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("are also read by node \"z\""), std::string::npos) << outcome.err;
}

TEST_F(CliWords, FaultsAreNamed) {
  EXPECT_NE(prune(kModel, kWeights, "1 40").err.find("has 40 words, and no number 40"),
            std::string::npos);
  EXPECT_NE(prune(kModel, kWeights, "1 b").err.find("expected numbers of words, found \"b\""),
            std::string::npos);
  EXPECT_NE(prune(kModel, kWeights, "").err.find("has no numbers of words"), std::string::npos);
  EXPECT_NE(place_.run("prune m.onnx -o s.onnx --keep-tokens text:ids.txt")
                .err.find("texts need the tokenizer"),
            std::string::npos);
  const Outcome none = prune("agraph (float[2, 5] x) => (float[2, 3] y) { y = MatMul(x, w) }",
                             {{"w", "5x3"}}, "1 2");
  EXPECT_NE(none.err.find("no input of the network has numbers of words"), std::string::npos);
}

}  // namespace
}  // namespace parsimony::test
