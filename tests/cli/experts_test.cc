// Experts leave as a whole, with what scores them; the proof is the original whose router never
// chooses them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
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

const std::string kGathered = R"(<ir_version: 8, opset_import: ["" : 17]>
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
const Weights kGatheredWeights{
    {"router", "5x6"}, {"up", "6x5x4"}, {"down", "6x4x5"}, {"out", "5x3"}};

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
  const Outcome outcome = prune(kGathered, kGatheredWeights, "--ratio 0.5 --granularity expert");
  EXPECT_EQ(left(), 3 * (5 + 20 + 20) + 15) << outcome.out << outcome.err;
  EXPECT_TRUE(is_proven()) << outcome.out << outcome.err;
}

/// A loop over four experts with layers of their own, written out; `gate` computes g from the
/// router's choice (v, at), its probabilities p, or the gates of all, w.
std::string loop(const std::string& gate) {
  std::string text = R"(<ir_version: 8, opset_import: ["" : 17]>
    agraph (float[7, 5] x) => (float[7, 3] y)
    <int64[1] k = {2}, int64[1] one = {1}, float zero = {0.0},
     int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64 i3 = {3},
     int64[1] n0 = {0}, int64[1] n1 = {1}, int64[1] n2 = {2}, int64[1] n3 = {3}, int64[1] n4 = {4}> {
    l = MatMul(x, router)
    v, at = TopK<axis = -1>(l, k)
    p = Softmax<axis = -1>(v)
    z = Sub(l, l)
    w = ScatterElements<axis = 1>(z, at, p)
    y0 = Mul(x, zero))";
  for (int e = 0; e < 4; ++e) {
    std::string branch = gate + R"(
    h# = MatMul(x, up#)
    a# = Relu(h#)
    o# = MatMul(a#, down#)
    s# = Mul(o#, g#)
    y& = Add(s#, y#))";
    for (size_t at = 0; (at = branch.find_first_of("#&", at)) != std::string::npos;) {
      branch[at] = static_cast<char>((branch[at] == '#' ? '0' : '1') + e);
    }
    text += branch;
  }
  return text + "\n    y = MatMul(y4, out) }";
}

const std::string kSliced = R"(
    g# = Slice(w, n#, n&, one))";
const std::string kCompared = R"(
    m# = Equal(at, i#)
    c# = Cast<to = 1>(m#)
    t# = Mul(c#, p)
    g# = ReduceSum(t#, one))";
const Weights kLoopWeights{{"router", "5x4"}, {"up0", "5x3"},   {"up1", "5x3"},   {"up2", "5x3"},
                           {"up3", "5x3"},    {"down0", "3x5"}, {"down1", "3x5"}, {"down2", "3x5"},
                           {"down3", "3x5"},  {"out", "5x3"}};

TEST_F(CliExperts, OfALoopLeaveWithTheirLayers) {
  for (const std::string& gate : {kSliced, kCompared}) {
    const Outcome outcome = prune(loop(gate), kLoopWeights, "--ratio 0.5 --granularity expert");
    EXPECT_EQ(left(), 2 * (5 + 15 + 15) + 15) << outcome.out << outcome.err;
    EXPECT_TRUE(is_proven()) << outcome.out << outcome.err;
    const Json plan = Json::parse(place_.bytes("p.json"));
    EXPECT_EQ(plan.at("blocks").size(), 2U);
    EXPECT_EQ(plan.at("groups").size(), 1U);
    EXPECT_EQ(place_.run("verify m.onnx s.onnx --plan p.json").code, 0);
    EXPECT_EQ(place_.run("verify m.onnx s.onnx --plan p.json --engine onnxruntime").code, 0);
    std::filesystem::remove(place_ / "t.onnx");
    EXPECT_EQ(place_.run("apply m.onnx --plan p.json -o t.onnx").code, 0);
    EXPECT_EQ(place_.bytes("t.onnx"), place_.bytes("s.onnx"));
  }
}

TEST_F(CliExperts, OfALoopAreScoredByTheirMatrices) {
  onnx::ModelProto model = model_of(loop(kCompared));
  for (const auto& [name, dims] : kLoopWeights) add_weight(model, name.c_str(), dims.c_str());
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() != "up1" && tensor.name() != "down1") continue;
    auto* numbers = reinterpret_cast<float*>(tensor.mutable_raw_data()->data());
    for (int i = 0; i < 15; ++i) numbers[i] *= 0.01F;
  }
  save(model, place_ / "m.onnx");
  place_.run("prune m.onnx -o s.onnx --force --plan p.json --ratio 0.25 --granularity expert");
  const Json groups = Json::parse(place_.bytes("p.json")).at("groups");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].at("slices")[0].at("keep"), Json({0, 2, 3}));
}

/// What experts add to tokens that did not choose them is in the reference.
TEST_F(CliExperts, OfALoopThatAddSomethingUnchosenAreNotProven) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const std::string other = kSliced;
  const std::string turned = other.substr(0, other.find("g#")) + "e# = Slice(w, n#, n&, one)" +
                             R"(
    f# = Sub(e#, e#)
    d# = Exp(f#)
    g# = Sub(d#, e#))";
  const Outcome outcome = prune(loop(turned), kLoopWeights, "--ratio 0.5 --granularity expert");
  EXPECT_NE(outcome.code, 0) << outcome.out;
  EXPECT_NE(outcome.err.find("It is caused by group g0"), std::string::npos) << outcome.err;
  EXPECT_EQ(
      prune(loop(turned), kLoopWeights, "--ratio 0.5 --granularity expert --on-failure exclude")
          .code,
      0);
  EXPECT_EQ(left(), 4 * (5 + 15 + 15) + 15);
}

TEST_F(CliExperts, OfALoopStayIfALayerOfOneIsExcluded) {
  const Outcome outcome =
      prune(loop(kSliced), kLoopWeights, "--ratio 0.5 --granularity expert --exclude h1");
  EXPECT_EQ(left(), 4 * (5 + 15 + 15) + 15);
  EXPECT_NE(outcome.out.find("\"h1\" is excluded: the experts stay"), std::string::npos)
      << outcome.out;
}

TEST_F(CliExperts, OfALoopStayWhereAPlaceIsBeyondTheAxis) {
  std::string gather = "\n    g# = Gather<axis = 1>(w, n#)";
  std::string text = loop(gather);
  text.replace(text.find("int64[1] n3 = {3}"), 17, "int64[1] n3 = {2000000000}");
  const Outcome outcome = prune(text, kLoopWeights, "--ratio 0.5 --granularity expert --no-verify");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(left(), 4 * (5 + 15 + 15) + 15) << outcome.out;
}

TEST_F(CliExperts, OfALoopStayWhereTheirResultIsReadElsewhere) {
  std::string text = loop(kSliced);
  text.replace(text.find("=> (float[7, 3] y)"), 18, "=> (float[7, 3] y, float[7, 5] o2)");
  prune(text, kLoopWeights, "--ratio 0.5 --granularity expert");
  EXPECT_TRUE(is_proven());
  for (const Json& slice : Json::parse(place_.bytes("p.json")).at("groups")[0].at("slices")) {
    const std::vector<int64_t> keep = slice.at("keep");
    EXPECT_NE(std::find(keep.begin(), keep.end(), 2), keep.end());
  }
}

const std::string kCalibrated = "--granularity expert --criterion reap --calibration random:16 ";

TEST_F(CliExperts, ThoseThatAddLeastToTheirTokensLeave) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  std::string text = kFused;
  text.insert(text.find("{"), "<float[8] rb = {0.0, 0.0, 0.0, -50.0, 0.0, 0.0, -50.0, 0.0}> ");
  Weights weights = kFusedWeights;
  weights.erase(weights.begin() + 2);
  const Outcome outcome = prune(text, weights, kCalibrated + "--ratio 0.25");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(is_proven()) << outcome.out << outcome.err;
  const Json groups = Json::parse(place_.bytes("p.json")).at("groups");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].at("slices")[0].at("keep"), Json({0, 1, 2, 4, 5, 7}));
}

TEST_F(CliExperts, ReapSaysWhatItCannotScore) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const auto expect_refusal = [&](const std::string& text, const Weights& weights,
                                  const std::string& options, const std::string& why) {
    const Outcome outcome = prune(text, weights, "--ratio 0.5 " + options);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.out << outcome.err;
  };
  expect_refusal(kFused, kFusedWeights, "--granularity expert --criterion reap",
                 "criterion \"reap\" needs data that runs through the network");
  expect_refusal(kFused, kFusedWeights, "--criterion reap --calibration random:16",
                 "criterion \"reap\" scores experts, and the channels of \"a\" are none: use it "
                 "with granularity expert");
  std::string twice = kFused;
  twice.replace(twice.find("y = "), 0,
                "l2 = MatMul(m, again)\n n = com.microsoft.MoE<k = 2>(m, l2, up, bias, down)\n ");
  Weights weights = kFusedWeights;
  weights.emplace_back("again", "8x8");
  expect_refusal(
      twice, weights, kCalibrated,
      "criterion \"reap\" cannot measure the experts at \"m\": no floating-point weights of "
      "theirs are read behind the scores alone");
  std::string inside = kGathered;
  inside.replace(inside.find("(float[7, 3] y)"), 15, "(float[7, 3] y, float[7, 2, 1, 4] a)");
  expect_refusal(
      inside, kGatheredWeights, kCalibrated,
      "criterion \"reap\" cannot measure the experts at \"p\": there is no value through "
      "which all passes that they and their gates give");
}

}  // namespace
}  // namespace parsimony::test
