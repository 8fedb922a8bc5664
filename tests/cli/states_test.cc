// Networks whose outputs are fed back, and whose inputs and outputs may shrink.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "parsimony/speedup/plan.h"
#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

/// A recurrence by hand: state' = tanh(x W + norm(state) R), y = state' O.
onnx::ModelProto recurrent() {
  onnx::ModelProto model = model_of(R"(
    agraph (float[N, 3] x, float[N, 8] state) => (float[N, 4] y, float[N, 8] new_state)
    <float eps = {0.00001}, int64[1] last = {-1}> {
      a = MatMul (x, w)
      mean = ReduceMean <axes = [-1]> (state)
      centred = Sub (state, mean)
      squares = Mul (centred, centred)
      variance = ReduceMean <axes = [-1]> (squares)
      padded = Add (variance, eps)
      deviation = Sqrt (padded)
      normal = Div (centred, deviation)
      b = MatMul (normal, r)
      sum = Add (a, b)
      new_state = Tanh (sum)
      y = MatMul (new_state, o)
    })");
  add_weight(model, "w", "3x8");
  add_weight(model, "r", "8x8");
  add_weight(model, "o", "8x4");
  return model;
}

class CliStates : public testing::Test {
 protected:
  CliStates() { save(recurrent(), place_ / "rnn.onnx"); }

  Workplace place_;
};

TEST_F(CliStates, WithoutTheOptionNothingShrinksAndTheNoteNamesIt) {
  const Outcome outcome = place_.run("prune rnn.onnx -o o.onnx --ratio 0.5");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "note: output"),
            "note: output \"new_state\" looks like a state that is fed back to \"state\", and "
            "keeps its channels; pass --states auto to prune states\n")
      << outcome.out;
  EXPECT_EQ(lines_with(outcome.out, "parameters"), "parameters      120    120  100.0%\n");
}

TEST_F(CliStates, ShrinkAndAreProvenOverEightSteps) {
  for (const std::string states : {"auto", "new_state=state"}) {
    const Outcome outcome = place_.run(
        "prune rnn.onnx -o o.onnx --ratio 0.5 --plan p.json "
        "--report r.json --states " +
        states);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    // 3·8 + 8·8 + 8·4 parameters before, 3·4 + 4·4 + 4·4 after.
    EXPECT_EQ(lines_with(outcome.out, "parameters"), "parameters      120     44  36.7%\n")
        << outcome.out;
    const Plan plan = Plan::load(place_ / "p.json");
    ASSERT_EQ(plan.ends.size(), 2U);
    EXPECT_EQ(plan.ends[0].value, "state");
    EXPECT_TRUE(plan.ends[0].input);
    EXPECT_EQ(plan.ends[1].value, "new_state");
    EXPECT_EQ(plan.ends[0].keep, plan.ends[1].keep);
    EXPECT_EQ(plan.states, (std::vector<PlanState>{{"new_state", "state"}}));
    if (!kHasTorch) continue;
    EXPECT_NE(outcome.out.find("on 3 random inputs and 8 steps from each.\n"), std::string::npos)
        << outcome.out;
    EXPECT_EQ(Json::parse(place_.bytes("r.json")).at("proof").at("steps"), 8);
  }
}

TEST_F(CliStates, ExplainSaysWhatHoldsThem) {
  const std::string state = "graph input \"state\"";
  EXPECT_NE(place_.run("explain rnn.onnx").out.find(state), std::string::npos);
  const Outcome freed = place_.run("explain rnn.onnx --states auto");
  EXPECT_EQ(freed.out.find(state), std::string::npos) << freed.out;
  EXPECT_NE(lines_with(freed.out, "g0: 8 channels"), "") << freed.out;
}

TEST_F(CliStates, ApplyRepeatsWhatPruneDid) {
  ASSERT_EQ(place_.run("prune rnn.onnx -o o.onnx --ratio 0.5 --states auto --plan p.json").code, 0);
  ASSERT_EQ(place_.run("apply rnn.onnx --plan p.json -o again.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("o.onnx"), place_.bytes("again.onnx")));
}

TEST_F(CliStates, AFaultInTheStateIsFound) {
  if (!kHasTorch) GTEST_SKIP();
  ASSERT_EQ(place_.run("prune rnn.onnx -o o.onnx --ratio 0.5 --states auto --plan p.json").code, 0);
  EXPECT_EQ(place_.run("verify rnn.onnx o.onnx --plan p.json").code, 0);
  onnx::ModelProto small;
  ASSERT_TRUE(small.ParseFromString(place_.bytes("o.onnx")));
  for (onnx::TensorProto& tensor : *small.mutable_graph()->mutable_initializer()) {
    if (tensor.name() == "r") tensor.mutable_raw_data()->at(3) ^= 1;  // the first exponent
  }
  save(small, place_ / "wrong.onnx");
  EXPECT_EQ(place_.run("verify rnn.onnx wrong.onnx --plan p.json").code, 1);
}

TEST_F(CliStates, OnnxRuntimeAgrees) {
  onnx::ModelProto model = model_of(R"(
    agraph (float[N, 3] x, float[N, 8] h0) => (float[N, 4] y, float[N, 8] hn) {
      a = MatMul (x, w)
      b = MatMul (h0, r)
      sum = Add (a, b)
      hn = Tanh (sum)
      y = MatMul (hn, o)
    })");
  add_weight(model, "w", "3x8");
  add_weight(model, "r", "8x8");
  add_weight(model, "o", "8x4");
  save(model, place_ / "plain.onnx");
  ASSERT_EQ(place_.run("prune plain.onnx -o o.onnx --ratio 0.5 --states auto --plan p.json").code,
            0);
  const Outcome outcome = place_.run("verify plain.onnx o.onnx --plan p.json --engine onnxruntime");
  if (outcome.code == 3) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Proven"), "") << outcome.out;
}

/// As PyTorch scripts a detector of speech: the state leaves a branch, and the file does not say
/// that its size is fixed.
TEST_F(CliStates, ShrinkInBranches) {
  onnx::ModelProto model = model_of(R"(
    agraph (float[N, 3] x, float[N, 8] state, int64 rate) => (float[N, 4] y, float[M, L] stateN)
    <int64 fast = {16000}> {
      is_fast = Equal (rate, fast)
      stateN = If (is_fast) <
        then_branch = t () => (float[N, 8] u) {
          a = MatMul (x, w)
          b = MatMul (state, r)
          c = Add (a, b)
          u = Tanh (c)
        },
        else_branch = e () => (float[N, 8] v) {
          d = MatMul (state, q)
          v = Tanh (d)
        }>
      y = MatMul (stateN, o)
    })");
  add_weight(model, "w", "3x8");
  add_weight(model, "r", "8x8");
  add_weight(model, "q", "8x8");
  add_weight(model, "o", "8x4");
  save(model, place_ / "if.onnx");
  for (const std::string rate : {"16000", "8000"}) {
    const Outcome outcome = place_.run(
        "prune if.onnx -o o.onnx --ratio 0.5 --states auto --input 2x3 --input rate=" + rate);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    // 3·4 + 4·4 + 4·4 + 4·4 of 3·8 + 8·8 + 8·8 + 8·4.
    EXPECT_EQ(lines_with(outcome.out, "parameters"), "parameters      184     60  32.6%\n")
        << outcome.out;
    const bool proven = !lines_with(outcome.out, "Proven").empty();
    EXPECT_NE(proven, !lines_with(outcome.out, "Not proven").empty()) << outcome.out;
    EXPECT_TRUE(proven || !kHasTorch) << outcome.out;
  }
}

TEST_F(CliStates, FreeInputsAndOutputsShrink) {
  const Outcome outcome = place_.run(
      "prune rnn.onnx -o o.onnx --ratio 0.5 --plan p.json --free x:1 --free y:1 --states auto");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // 2·4 + 4·4 + 4·2: of three channels of x two stay.
  EXPECT_EQ(lines_with(outcome.out, "parameters"), "parameters      120     32  26.7%\n")
      << outcome.out;
  EXPECT_EQ(lines_with(outcome.out, kHasTorch ? "Proven" : "Not proven").empty(), false);
  EXPECT_EQ(Plan::load(place_ / "p.json").ends.size(), 4U);
}

TEST_F(CliStates, RefusesWhatRunsTheSmallNetworkOnOtherData) {
  const Outcome outcome =
      place_.run("prune rnn.onnx -o o.onnx --layers 1 --states auto --calibration shapes");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("--layers runs the small network on the data of the original"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace parsimony::test
