// Which outputs are fed back, and what a user sets free.
#include "parsimony/graph/interface.h"

#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/graph/infer.h"
#include "tests/graph/builder.h"

namespace parsimony::test {
namespace {

/// Inputs, and outputs of the shapes of inputs.
class Ends : public Builder {
 public:
  void in(const std::string& name, Shape dims, DType dtype = DType::kFloat32) {
    shaped_[name] = input(name, std::move(dims), dtype);
  }
  /// Shaped like an input.
  void out(const std::string& name, const std::string& like) {
    const ValueId v = node("Relu", {shaped_.at(like)}, name);
    graph.value(v).dtype = DType::kFloat32;
    output(v);
  }

  /// "OUT=IN" each.
  std::vector<std::string> states(const std::vector<std::string>& asked) {
    if (facts_.shapes.empty()) {
      finish(graph);
      facts_ = infer(graph);
    }
    found_ = resolve({asked, {}}, graph, facts_);
    std::vector<std::string> texts;
    for (const StatePair& state : found_.states) {
      texts.push_back(graph.value(state.output).name + "=" + graph.value(state.input).name);
    }
    return texts;
  }

  std::vector<std::string> free(const std::vector<std::string>& asked) {
    finish(graph);
    std::vector<std::string> texts;
    for (const auto& [value, dim] : resolve({{}, asked}, graph, infer(graph)).free) {
      texts.push_back(graph.value(value).name + "[" + std::to_string(dim) + "]");
    }
    return texts;
  }

  const Interface& found() const { return found_; }

 private:
  std::map<std::string, ValueId> shaped_;
  Facts facts_;
  Interface found_;
};

using Names = std::vector<std::string>;

TEST(States, AreFoundByTheirNames) {
  Ends ends;
  for (const char* in : {"x", "past_key_values.0.key", "past_key_values.0.value", "h0", "state",
                         "conv_cache", "c_0"}) {
    ends.in(in, {2, 4});
  }
  ends.out("y", "x");
  ends.out("present.0.value", "x");
  ends.out("present.0.key", "x");
  ends.out("hn", "x");
  ends.out("stateN", "x");
  ends.out("conv_cache_out", "x");
  ends.out("c_n", "x");
  EXPECT_EQ(ends.states({"auto"}),
            (Names{"present.0.key=past_key_values.0.key", "present.0.value=past_key_values.0.value",
                   "c_n=c_0", "conv_cache_out=conv_cache", "hn=h0", "stateN=state"}));
}

TEST(States, AreFoundByTheirShapesBehindTheFirst) {
  Ends ends;
  ends.in("image", {2, 4});
  ends.in("a", {3, 5});
  ends.in("b", {2, 4});
  ends.out("17", "image");
  ends.out("18", "b");
  ends.out("19", "a");
  EXPECT_EQ(ends.states({"auto"}), (Names{"18=b", "19=a"}));
}

TEST(States, MayBeTheFirstIfOthersAreLeftAsData) {
  Ends sorted;  // by their names, as TensorFlow does
  sorted.in("h_in", {1, 16});
  sorted.in("x", {1, 24});
  sorted.out("h_out", "h_in");
  sorted.out("y", "x");
  EXPECT_EQ(sorted.states({"auto"}), Names{"h_out=h_in"});
  Ends last;
  last.in("x", {1, 24});
  last.in("condition", {1, 16});
  last.in("c_in", {1, 8});
  last.out("y", "x");
  last.out("feature", "condition");
  last.out("c_out", "c_in");
  EXPECT_EQ(last.states({"auto"}), Names{"c_out=c_in"}) << "names tell";
}

TEST(States, DataAreNone) {
  Ends ends;
  ends.in("input", {2, 4});
  ends.out("output", "input");
  EXPECT_EQ(ends.states({"auto"}), Names());
  Ends denoiser;
  denoiser.in("image", {2, 4});
  denoiser.out("image_out", "image");
  EXPECT_EQ(denoiser.states({"auto"}), Names());
}

TEST(States, TieTheDimensionsThatTheFileFixes) {
  Ends ends;
  ends.in("x", {2, 4});
  ends.in("past", {-1, 4, 1});
  ends.out("y", "x");
  ends.out("present", "past");
  EXPECT_EQ(ends.states({"present=past"}), Names{"present=past"});
  ASSERT_EQ(ends.found().tied.size(), 1U);
  EXPECT_EQ(ends.found().tied[0].first.dim, 1);
  EXPECT_EQ(ends.found().free.size(), 2U);
}

TEST(States, SayWhyAPairIsNone) {
  Ends ends;
  ends.in("x", {2, 4});
  ends.in("z", {3, 5});
  ends.in("n", {2, 4}, DType::kInt64);
  ends.out("y", "x");
  const auto error = [&](const char* asked) -> std::string {
    try {
      ends.states({asked});
    } catch (const ConfigError& fault) {
      return fault.what();
    }
    return "";
  };
  EXPECT_EQ(error("y=z"),
            "--states y=z: the output cannot be fed back: shapes [2, 4] and [3, 5] do not fit");
  EXPECT_EQ(error("y=n"),
            "--states y=n: the output cannot be fed back: their element types differ");
  EXPECT_EQ(error("why=x"), "the network has no output \"why\".");
  EXPECT_EQ(
      error("y"),
      "--states: found \"y\", expected auto or OUTPUT=INPUT, the output that the next run takes "
      "as input");
  EXPECT_EQ(error("y=x"), "");
  EXPECT_THROW(ends.states({"y=x", "y=x"}), ConfigError);
}

TEST(States, PairsThatAreGivenComeBeforeThoseThatAreFound) {
  Ends ends;
  for (const char* in : {"x", "past", "other"}) ends.in(in, {2, 4});
  ends.out("y", "x");
  ends.out("present", "past");
  EXPECT_EQ(ends.states({"auto", "present=other"}), Names{"present=other"});
}

TEST(States, NamesMayHaveOtherLetters) {
  Ends ends;
  for (const char* in : {"x", "état_in"}) ends.in(in, {2, 4});
  ends.out("y", "x");
  ends.out("état_out", "état_in");
  EXPECT_EQ(ends.states({"auto"}), Names{"état_out=état_in"});
}

TEST(Free, IsADimensionOrAllOfThem) {
  Ends all;
  all.in("x", {-1, 4, 1, 6});
  EXPECT_EQ(all.free({"x"}), (Names{"x[1]", "x[3]"}));
  Ends one;
  one.in("x:0", {2, 4});
  EXPECT_EQ(one.free({"x:0:-1"}), Names{"x:0[1]"});
  Ends whole;
  whole.in("x:0", {2, 4});
  EXPECT_EQ(whole.free({"x:0"}), (Names{"x:0[0]", "x:0[1]"}));
}

TEST(Free, RefusesAxesThatHaveNoChannels) {
  Ends ends;
  ends.in("x", {-1, 4});
  EXPECT_THROW(ends.free({"x:0"}), ConfigError);
  EXPECT_THROW(ends.free({"x:2"}), ConfigError);
  EXPECT_THROW(ends.free({"x:one"}), ConfigError);
  EXPECT_THROW(ends.free({"y"}), ConfigError);
}

Names placed(const Graph& graph, const std::vector<std::string>& texts) {
  std::vector<InputSpec> specs;
  for (const std::string& text : texts) specs.push_back(parse_input_spec(text));
  Names found;
  for (const InputSpec& spec : by_position(specs, graph)) found.push_back(to_text(spec));
  return found;
}

TEST(InputSpecs, StandWhereTheirNamesSay) {
  Ends ends;
  ends.in("image", {-1, 4});
  ends.in("rate", {});
  ends.in("mask", {2, 4});
  finish(ends.graph);
  EXPECT_EQ(placed(ends.graph, {"mask=2x4", "1x4"}), (Names{"1x4", "?", "2x4"}));
  EXPECT_EQ(placed(ends.graph, {"rate=:int64=16000"}), (Names{"?", ":int64=16000"}));
  EXPECT_EQ(placed(ends.graph, {"mask=1"}), (Names{"?", "?", "?=1"}));
  EXPECT_EQ(placed(ends.graph, {"mask=1234567.125"}), (Names{"?", "?", "?=1234567.125"}));
  EXPECT_EQ(placed(ends.graph, {"?", ":int64=8"}), (Names{"?", ":int64=8"}));
  EXPECT_THROW(placed(ends.graph, {"imag=1x4"}), ConfigError);
  EXPECT_THROW(placed(ends.graph, {"1", "1", "1", "1"}), ConfigError);
}

TEST(InputSpecs, StayWhereTheyHaveBeenPlaced) {
  Ends ends;
  ends.in("image", {-1, 4});
  ends.in("rate", {});
  finish(ends.graph);
  std::vector<InputSpec> specs;
  for (const char* text : {"1x4", ":int64=8", "image=3x4"}) specs.push_back(parse_input_spec(text));
  const std::vector<InputSpec> once = by_position(specs, ends.graph);
  EXPECT_EQ(to_text(once.front()), "3x4");
  EXPECT_EQ(by_position(once, ends.graph), once);
}

TEST(InputSpecs, AreThoseOfTheInputsThatTheyName) {
  Ends ends;
  ends.in("image", {-1, 4});
  ends.in("mask", {-1, 4});
  finish(ends.graph);
  const Probe probe = choose_probe(ends.graph, {parse_input_spec("mask=7x4")});
  const Facts facts = infer(ends.graph, probe);
  EXPECT_EQ(facts.shapes[ends.graph.inputs[0]], (Shape{2, 4}));
  EXPECT_EQ(facts.shapes[ends.graph.inputs[1]], (Shape{7, 4}));
}

TEST(InputSpecs, OpenOnesLeaveTheShapeToTheModel) {
  Ends ends;
  ends.in("image", {-1, 4});
  ends.in("rate", {});
  finish(ends.graph);
  Probe probe;
  for (const char* text : {"?", "?=0.5"}) probe.inputs.push_back(parse_input_spec(text));
  const Facts facts = infer(ends.graph, probe);
  EXPECT_EQ(facts.shapes[ends.graph.inputs[0]], (Shape{2, 4}));
  const auto& rate = facts.constants[ends.graph.inputs[1]];
  ASSERT_TRUE(rate.has_value());
  EXPECT_EQ(rate->number(0), 0.5);
}

}  // namespace
}  // namespace parsimony::test
