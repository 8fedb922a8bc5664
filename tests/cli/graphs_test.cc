// Graphs as other people's exporters write them: open sizes, decoders in attributes, layers that
// are applied to constants, channels of no layer, softmax written out.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;
using Weights = std::vector<std::pair<std::string, std::string>>;

class CliGraphs : public testing::Test {
 protected:
  /// Prunes by half; `options` follow.
  Outcome prune(const std::string& text, const Weights& weights, const std::string& options = "") {
    onnx::ModelProto model = model_of(text);
    for (const auto& [name, dims] : weights) add_weight(model, name.c_str(), dims.c_str());
    save(model, place_ / "m.onnx");
    return place_.run("prune m.onnx -o s.onnx --force --ratio 0.5 --report r.json " + options);
  }

  Json report() const { return Json::parse(place_.bytes("r.json")); }

  /// Parameters that are left, and whether the proof holds.
  std::pair<int64_t, bool> left() const {
    const Json found = report();
    const Json& proof = found.at("proof");
    return {found.at("params").at("after"), proof.at("ran") && proof.at("holds")};
  }

  Workplace place_;
};

using Left = std::pair<int64_t, bool>;

TEST_F(CliGraphs, AnOpenSizeThatMeetsAFixedOneIsThatOne) {
  prune(
      "agraph (float[n, features] x) => (float[n, 3] y) { a = Gemm<transB = 1>(x, w)\n r = "
      "Relu(a)\n"
      "y = Gemm<transB = 1>(r, v) }",
      {{"w", "24x84"}, {"v", "3x24"}});
  EXPECT_EQ(left(), Left(12 * 84 + 3 * 12, true));
  prune(
      "agraph (float[n, 8] x, float[n, m] z) => (float[n, 3] y) { a = MatMul(x, w)\n r = Relu(a)\n"
      "c = MatMul(r, v)\n y = Add(c, z) }",
      {{"w", "8x24"}, {"v", "24x3"}});
  EXPECT_EQ(left(), Left(8 * 12 + 12 * 3, true));
}

TEST_F(CliGraphs, ALeadingOpenSizeMayBeTime) {
  prune(R"(agraph (float[time, 10] x) => (float[t, 4] y) <int64[1] zero = {0}> {
    a = Unsqueeze(x, zero)
    b = Transpose<perm = [0, 2, 1]>(a)
    c = Conv(b, w)
    d = Relu(c)
    e = Conv(d, v)
    f = Transpose<perm = [0, 2, 1]>(e)
    y = Squeeze(f, zero) })",
        {{"w", "24x10x3"}, {"v", "4x24x3"}});
  EXPECT_EQ(left(), Left(12 * 10 * 3 + 4 * 12 * 3, true));
}

TEST_F(CliGraphs, AMaskLimitsAnOpenSize) {
  prune(R"(agraph (int64[b, n] ids) => (float[b, n, 3] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
    e = Gather(table, ids)
    s = Shape(ids)
    n = Slice(s, one, two)
    m0 = Slice(mask, zero, n, zero)
    m = Slice(m0, zero, n, one)
    q = MatMul(e, wq)
    k = MatMul(e, wk)
    kt = Transpose<perm = [0, 2, 1]>(k)
    p0 = MatMul(q, kt)
    p = Mul(p0, m)
    c = MatMul(p, e)
    y = MatMul(c, wo) })",
        {{"table", "40x16"}, {"wq", "16x8"}, {"wk", "16x8"}, {"wo", "16x3"}, {"mask", "8x8"}});
  EXPECT_EQ(left(), Left(40 * 8 + 2 * 8 * 4 + 8 * 3 + 64, true));
}

TEST_F(CliGraphs, SizesThatNothingReconcilesStayOpen) {
  const Outcome outcome = prune(
      "agraph (float[n, m] x) => (float[n, 3] y) { a = MatMul(x, w)\n b = MatMul(x, v)\n"
      "y = Sum(a, b) }",
      {{"w", "5x3"}, {"v", "7x3"}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(
      outcome.out.find("note: no sizes were found for what the file leaves open of its inputs"),
      std::string::npos)
      << outcome.out;
}

TEST_F(CliGraphs, AnInputMayBeTheSizeOfAnother) {
  prune(R"(agraph (int64 length, int64[length] ids) => (float[1, 3, length] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] channels = {16}> {
    l = Unsqueeze(length, zero)
    to = Concat<axis = 0>(one, channels, l)
    e = Gather(table, ids)
    t = Transpose<perm = [1, 0]>(e)
    r = Reshape(t, to)
    a = Conv(r, w)
    b = Relu(a)
    y = Conv(b, v) })",
        {{"table", "40x16"}, {"w", "24x16x1"}, {"v", "3x24x1"}});
  EXPECT_EQ(left(), Left(40 * 8 + 12 * 8 + 3 * 12, true));
}

TEST_F(CliGraphs, ALayerThatIsAppliedToAConstantTooIsPruned) {
  const std::string text = R"(agraph (float[1, 2, 8, 8] x) => (float[1, 3, 8, 8] y) {
    a = Conv(constant, w)
    b = Relu(a)
    c = Conv(b, v)
    d = Conv(x, w)
    e = Relu(d)
    f = Conv(e, v)
    y = Add(c, f) })";
  prune(text, {{"constant", "1x2x8x8"}, {"w", "16x2x1x1"}, {"v", "3x16x1x1"}});
  EXPECT_EQ(left(), Left(128 + 8 * 2 + 3 * 8, true));
}

TEST_F(CliGraphs, ChannelsOfNoLayerFollowTheEntryForAll) {
  const std::string text = R"(agraph (float[2, 7, 5] x) => (float[2, 7, 5] y) {
    p = Relu(tokens)
    q = MatMul(p, w)
    y = Add(x, q) })";
  const Weights weights{{"tokens", "1x7x16"}, {"w", "16x5"}};
  prune(text, weights);
  EXPECT_EQ(left(), Left(7 * 8 + 8 * 5, true));
}

TEST_F(CliGraphs, ExpertsAreALayer) {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    agraph (float[4, 5] x) => (float[4, 4] y) {
    a = MatMul(x, w)
    r = MatMul(x, router)
    m = com.microsoft.MoE<k = 2, activation_type = "silu">(a, r, up, bias, down)
    y = MatMul(m, out) })";
  const Weights weights{{"w", "5x8"},    {"router", "5x3"}, {"up", "3x6x8"},
                        {"bias", "3x6"}, {"down", "3x8x6"}, {"out", "8x4"}};
  prune(text, weights, "--op-types MoE");
  EXPECT_EQ(left(), Left(5 * 8 + 5 * 3 + 3 * 3 * 8 + 3 * 3 + 3 * 8 * 3 + 8 * 4, true));
}

TEST_F(CliGraphs, WhatFollowsAnUnknownOperatorIsPruned) {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    agraph (float[2, 5] x) => (float[2, 3] y) {
    a = MatMul(x, w)
    d = com.microsoft.CDist<metric = "euclidean">(a, places)
    h = MatMul(d, v)
    r = Relu(h)
    y = MatMul(r, out) })";
  const Weights weights{{"w", "5x8"}, {"places", "6x8"}, {"v", "6x16"}, {"out", "16x3"}};
  const Outcome outcome = prune(text, weights);
  EXPECT_EQ(left(), Left(5 * 8 + 6 * 8 + 6 * 8 + 8 * 3, true)) << outcome.out << outcome.err;
  const Outcome explained = place_.run("explain m.onnx");
  EXPECT_NE(explained.out.find("unknown operator com.microsoft.CDist"), std::string::npos)
      << explained.out;
}

TEST_F(CliGraphs, ExplainAnswersWhereNothingIsThere) {
  prune("agraph (float[1, 1, 8, 8] x) => (float[1, 1, 8, 8] y) { a = Conv(x, w)\n y = Relu(a) }",
        {{"w", "1x1x1x1"}});
  EXPECT_EQ(place_.run("explain m.onnx").out,
            "no weight of this network has an axis longer than 1.\n");
  const Outcome outcome = prune("agraph (float[1, 4] x) => (float[1, 4] y) { y = Relu(x) }", {});
  EXPECT_EQ(lines_with(outcome.out, "note:"),
            "note: nothing was pruned: this network has no weights\n");
  EXPECT_EQ(place_.run("explain m.onnx").out, "this network has no weights.\n");
}

TEST_F(CliGraphs, DecodersInAttributesArePruned) {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    agraph (int32[b, s] ids, int32[1] max_length) => (int32[b, max] sequences) {
    sequences = com.microsoft.GreedySearch<eos_token_id = 39, pad_token_id = 39, model_type = 0,
      decoder = d (int32[b, s] input_ids, int32[b, s] position_ids, int32[b, all] attention_mask,
                   float[2, b, 2, past, 8] past_0)
          => (float[b, s, 40] logits, float[2, b, 2, all, 8] present_0)
        <int64[4] to = {0, 0, 2, 8}, int64[1] zero = {0}> {
        e0 = Gather(words, input_ids)
        e1 = Gather(places, position_ids)
        e = Add(e0, e1)
        h = MatMul(e, w)
        r = Relu(h)
        c = MatMul(r, v)
        logits = MatMul(c, head)
        k0 = Reshape(e, to)
        k1 = Transpose<perm = [0, 2, 1, 3]>(k0)
        k2 = Unsqueeze(k1, zero)
        kv = Concat<axis = 0>(k2, k2)
        present_0 = Concat<axis = 3>(past_0, kv)
      }>(ids, max_length, , ) })";
  const Weights weights{
      {"words", "40x16"}, {"places", "64x16"}, {"w", "16x32"}, {"v", "32x16"}, {"head", "16x40"}};
  const Outcome outcome = prune(text, weights, "--input ids=2x3:int32 --input max_length=8");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(left(), Left(40 * 16 + 64 * 16 + 16 * 16 + 16 * 8 + 8 * 40, true)) << outcome.out;
}

TEST_F(CliGraphs, OutcomesOfASoftmaxStayHoweverItIsSpelt) {
  const std::vector<std::string> spellings{
      "e = Exp(a)\n z = ReduceSum<keepdims = 1>(e, last)\n p = Div(e, z)",
      "l = LogSoftmax<axis = -1>(a)\n p = Exp(l)",
      "q = Softmax<axis = -1>(a)\n p = Relu(q)",
      "q = Softmax<axis = -1>(a)\n p = Clip(q)",
      "p = Hardmax<axis = -1>(a)",
  };
  for (const std::string& spelling : spellings) {
    const Outcome outcome = prune(
        "agraph (float[2, 8] x) => (float[2, 1] y) <int64[1] last = {-1}> { h = MatMul(x, w)\n"
        "a = Relu(h)\n" +
            spelling + "\n y = MatMul(p, bins) }",
        {{"w", "8x16"}, {"bins", "16x1"}});
    EXPECT_EQ(lines_with(outcome.out, "parameters"), "parameters      144    144  100.0%\n")
        << spelling << "\n"
        << outcome.out;
    EXPECT_NE(outcome.out.find("weights the outputs of a softmax"), std::string::npos) << spelling;
  }
  // A normalisation by the sum of what becomes zero is none.
  prune(
      "agraph (float[2, 8] x) => (float[2, 1] y) <int64[1] last = {-1}, float one = {1.0}> {\n"
      "h = MatMul(x, w)\n a = Relu(h)\n z = ReduceSum<keepdims = 1>(a, last)\n s = Add(z, one)\n"
      "p = Div(a, s)\n y = MatMul(p, bins) }",
      {{"w", "8x16"}, {"bins", "16x1"}});
  EXPECT_EQ(left(), Left(72, true));
}

TEST_F(CliGraphs, BranchesThatDoNotRunAreNotMeasured) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  for (const std::string criterion : {"obs", "sparsegpt"}) {
    const Outcome outcome = prune(
        "agraph (float[N, 5] x) => (float[N, 4] y) <float far = {1000.0}> {\n"
        "m = ReduceMax<keepdims = 0>(x)\n c = Greater(m, far)\n y = If(c) <then_branch = g1 () => "
        "(float[N, 4] u) { a = MatMul(x, a1) b = Relu(a) u = MatMul(b, a2) }, else_branch = g2 () "
        "=> (float[N, 4] w) { d = MatMul(x, b1) e = Relu(d) w = MatMul(e, b2) }> }",
        {{"a1", "5x8"}, {"a2", "8x4"}, {"b1", "5x8"}, {"b2", "8x4"}},
        "--calibration random:32 --criterion " + criterion);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const char* said = criterion == "obs" ? "nothing was measured there" : "was not measured";
    const size_t first = outcome.out.find(said);
    EXPECT_NE(first, std::string::npos) << outcome.out << outcome.err;
    EXPECT_TRUE(criterion != "obs" || outcome.out.rfind(said) == first) << "of one branch";
  }
}

}  // namespace
}  // namespace parsimony::test
