// Experts leave as a whole, with what scores them; the proof is the original whose router never
// chooses them.
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

const std::string kFused = R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    agraph (float[4, 5] x) => (float[4, 4] y) {
    a = MatMul(x, w)
    l = MatMul(x, router)
    r = Add(l, rb)
    m = com.microsoft.MoE<k = 2, activation_type = "silu">(a, r, up, bias, down)
    y = MatMul(m, out) })";
const Weights kFusedWeights{{"w", "5x8"},    {"router", "5x8"}, {"rb", "8"},   {"up", "8x6x8"},
                            {"bias", "8x6"}, {"down", "8x8x6"}, {"out", "8x4"}};

/// The weights of so many of kFused's experts.
int64_t parameters(int64_t experts) {
  return 5 * 8 + experts * (5 + 1 + 6 * 8 + 6 + 8 * 6) + 8 * 4;
}

class CliExperts : public testing::Test {
 protected:
  Outcome prune(const std::string& text, const Weights& weights, const std::string& options) {
    onnx::ModelProto model = model_of(text);
    for (const auto& [name, dims] : weights) add_weight(model, name.c_str(), dims.c_str());
    save(model, place_ / "m.onnx");
    return place_.run("prune m.onnx -o s.onnx --force --plan p.json --report r.json " + options);
  }

  Json report() const { return Json::parse(place_.bytes("r.json")); }
  int64_t left() const { return report().at("params").at("after"); }
  bool is_proven() const {
    const Json proof = report().at("proof");
    return proof.at("ran") && proof.at("holds") && proof.at("mixes");
  }

  Workplace place_;
};

TEST_F(CliExperts, StayByDefault) {
  prune(kFused, kFusedWeights, "--ratio 0.5");
  for (const Json& group : Json::parse(place_.bytes("p.json")).at("groups")) {
    EXPECT_NE(group.at("granularity"), "expert");
  }
  const Outcome why = place_.run("explain m.onnx");
  EXPECT_NE(why.out.find("they leave by granularity expert only"), std::string::npos) << why.out;
}

TEST_F(CliExperts, AreAllThatLeavesByGranularityExpert) {
  const Outcome outcome = prune(kFused, kFusedWeights, "--ratio 0.5 --granularity expert");
  EXPECT_EQ(left(), parameters(4)) << outcome.out << outcome.err;
  EXPECT_TRUE(is_proven()) << outcome.out << outcome.err;
  const Json groups = Json::parse(place_.bytes("p.json")).at("groups");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].at("granularity"), "expert");
  EXPECT_EQ(groups[0].at("mixes"), true);
  EXPECT_EQ(place_.run("verify m.onnx s.onnx --plan p.json").code, 0);
  EXPECT_EQ(place_.run("apply m.onnx --plan p.json -o t.onnx").code, 0);
  EXPECT_EQ(place_.bytes("t.onnx"), place_.bytes("s.onnx"));
}

TEST_F(CliExperts, LeaveByAnEntryOfTheirLayers) {
  place_.write("c.json", R"([{"op_types": ["MoE"], "sparse_ratio": 0.25, "granularity": "expert"},
                             {"op_names": ["a"], "sparse_ratio": 0.5}])");
  const Outcome outcome = prune(kFused, kFusedWeights, "--config c.json");
  EXPECT_EQ(report().at("proof").at("holds"), true) << outcome.out << outcome.err;
  const Json groups = Json::parse(place_.bytes("p.json")).at("groups");
  ASSERT_GE(groups.size(), 1U);
  bool any = false;
  for (const Json& group : groups)
    any = any || (group.at("granularity") == "expert" && group.at("kept") == 6);
  EXPECT_TRUE(any) << groups.dump();
}

TEST_F(CliExperts, AsManyStayAsAreChosen) {
  const Outcome outcome = prune(kFused, kFusedWeights, "--ratio 0.95 --granularity expert");
  EXPECT_EQ(left(), parameters(2)) << outcome.out << outcome.err;
  EXPECT_TRUE(is_proven());
  EXPECT_NE(outcome.out.find("2 of 8 experts stay, as many as each token chooses"),
            std::string::npos)
      << outcome.out;
}

TEST_F(CliExperts, AreKeptWhereOnlyWhatIsExactMayLeave) {
  prune(kFused, kFusedWeights, "--ratio 0.5 --granularity expert --exact-only");
  EXPECT_EQ(left(), parameters(8));
}

TEST_F(CliExperts, WhoseLayersAreExcludedStay) {
  prune(kFused, kFusedWeights, "--ratio 0.5 --granularity expert --exclude l");
  EXPECT_EQ(left(), parameters(8));
}

TEST_F(CliExperts, WhoseScoresAreAnOutputStay) {
  std::string text = kFused;
  text.replace(text.find("=> (float[4, 4] y)"), 18, "=> (float[4, 4] y, float[4, 8] r)");
  const Outcome outcome = prune(text, kFusedWeights, "--ratio 0.5 --granularity expert");
  EXPECT_EQ(left(), parameters(8));
  EXPECT_NE(outcome.out.find("no experts were found that can leave"), std::string::npos)
      << outcome.out;
}

TEST_F(CliExperts, ThoseOfLeastWeightLeave) {
  onnx::ModelProto model = model_of(kFused);
  for (const auto& [name, dims] : kFusedWeights) add_weight(model, name.c_str(), dims.c_str());
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() != "up" && tensor.name() != "down") continue;
    auto* numbers = reinterpret_cast<float*>(tensor.mutable_raw_data()->data());
    for (int i = 0; i < 48; ++i) numbers[3 * 48 + i] *= 0.01F;  // expert 3
  }
  save(model, place_ / "m.onnx");
  place_.run("prune m.onnx -o s.onnx --force --plan p.json --ratio 0.125 --granularity expert");
  const Json groups = Json::parse(place_.bytes("p.json")).at("groups");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].at("slices")[0].at("keep"), Json({0, 1, 2, 4, 5, 6, 7}));
}

TEST_F(CliExperts, MatricesThatAreGatheredByTheRoutersChoiceLeave) {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17]>
    agraph (float[7, 5] x) => (float[7, 3] y)
    <int64[1] k = {2}, int64[1] one = {1}, int64[1] two = {2}> {
    l = MatMul(x, router)
    p = Softmax<axis = -1>(l)
    v, at = TopK<axis = -1>(p, k)
    u = Gather<axis = 0>(up, at)
    d = Gather<axis = 0>(down, at)
    x2 = Unsqueeze(x, one)
    x3 = Unsqueeze(x2, two)
    h = MatMul(x3, u)
    a = Relu(h)
    o0 = MatMul(a, d)
    o = Squeeze(o0, two)
    g = Unsqueeze(v, two)
    w = Mul(o, g)
    s = ReduceSum<keepdims = 0>(w, one)
    y = MatMul(s, out) })";
  const Outcome outcome =
      prune(text, {{"router", "5x6"}, {"up", "6x5x4"}, {"down", "6x4x5"}, {"out", "5x3"}},
            "--ratio 0.5 --granularity expert");
  EXPECT_EQ(left(), 3 * (5 + 20 + 20) + 15) << outcome.out << outcome.err;
  EXPECT_TRUE(is_proven()) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace parsimony::test
