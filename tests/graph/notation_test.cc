#include "parsimony/graph/operators/notation.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace parsimony::notation {
namespace {

const Alternative only(std::string_view text) {
  const Line line = parse(text);
  EXPECT_EQ(line.alternatives.size(), 1U) << text;
  return line.alternatives.at(0);
}

TEST(Notation, ReadsOperandsAndDimensions) {
  const Alternative a = only("x[n (g i) ..s] w[(g o) i ..k] b[(g o)]? -> y[n (g o) ..t]");
  ASSERT_EQ(a.inputs.size(), 3U);
  ASSERT_EQ(a.outputs.size(), 1U);
  EXPECT_EQ(a.inputs[0].name, "x");
  ASSERT_EQ(a.inputs[0].dims.size(), 3U);
  EXPECT_EQ(a.inputs[0].dims[0].labels, (std::vector<std::string>{"n"}));
  EXPECT_EQ(a.inputs[0].dims[1].labels, (std::vector<std::string>{"g", "i"}));
  EXPECT_TRUE(a.inputs[0].dims[2].ellipsis);
  EXPECT_EQ(a.inputs[0].dims[2].labels, (std::vector<std::string>{"s"}));
  EXPECT_FALSE(a.inputs[1].optional);
  EXPECT_TRUE(a.inputs[2].optional);
}

TEST(Notation, ReadsMarks) {
  const Alternative a = only("a*[..x] b~[m n] c![3] d~![]? -> y[..x]");
  EXPECT_TRUE(a.inputs[0].variadic);
  EXPECT_TRUE(a.inputs[1].broadcast);
  EXPECT_FALSE(a.inputs[1].divisor);
  EXPECT_TRUE(a.inputs[2].divisor);
  EXPECT_EQ(a.inputs[2].dims[0].labels, (std::vector<std::string>{"3"}));
  EXPECT_TRUE(a.inputs[3].broadcast && a.inputs[3].divisor && a.inputs[3].optional);
  EXPECT_TRUE(a.inputs[3].dims.empty());
}

TEST(Notation, ReadsClauses) {
  const Alternative a = only(
      "x[..a c r] w[r c] -> y[..a c r] ; |..a| = attr axis -1 ; c = attr group 2 ; pin r"
      "; mixes c ; macs w y ; swap w transB ; since 13 ; until 17 ; if mode = CRD");
  ASSERT_EQ(a.bindings.size(), 2U);
  EXPECT_TRUE(a.bindings[0].counts_dims);
  EXPECT_EQ(a.bindings[0].attribute, "axis");
  EXPECT_EQ(a.bindings[0].fallback, -1);
  EXPECT_FALSE(a.bindings[1].counts_dims);
  EXPECT_EQ(a.bindings[1].label, "c");
  EXPECT_EQ(a.bindings[1].fallback, 2);
  EXPECT_EQ(a.pins, (std::vector<std::string>{"r"}));
  EXPECT_EQ(a.mixes, (std::vector<std::string>{"c"}));
  EXPECT_EQ(a.macs, (std::vector<std::vector<std::string>>{{"w", "y"}}));
  ASSERT_EQ(a.swaps.size(), 1U);
  EXPECT_EQ(a.swaps[0].attribute, "transB");
  EXPECT_EQ(a.since, 13);
  EXPECT_EQ(a.until, 17);
  ASSERT_EQ(a.conditions.size(), 1U);
  EXPECT_EQ(a.conditions[0].value, "CRD");
}

TEST(Notation, ReadsAlternatives) {
  const Line line = parse("a[k] b[k] -> y[] | a[..b m k] b[k] -> y[..b m] ; macs b y");
  ASSERT_EQ(line.alternatives.size(), 2U);
  EXPECT_TRUE(line.alternatives[0].outputs[0].dims.empty());
  EXPECT_EQ(line.alternatives[1].macs[0].size(), 2U);
}

TEST(Notation, ReadsSumsOfProducts) {
  const Alternative a = only("x[t i] w[h i] r[h h] -> y[t h] ; macs x w + t r");
  EXPECT_EQ(a.macs, (std::vector<std::vector<std::string>>{{"x", "w"}, {"t", "r"}}));
}

TEST(Notation, SpaceDoesNotMatter) {
  EXPECT_EQ(only("x[n(g i)..s]->y[n(g i)..s];g=attr group 1").bindings.size(), 1U);
}

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Notation, SaysWhereALineIsMalformed) {
  EXPECT_EQ(error_of("x[n c -> y[n c]"),
            "operator line \"x[n c -> y[n c]\", column 7: expected a name");
  for (const char* text :
       {"", "x[n]", "x -> y[n]", "x[n] y[n]", "x[n] -> y[n", "x[(n] -> y[n]",
        "x[n] -> y[n] ; pin q", "x[n] -> y[n] ; mixes q", "x[n] -> y[n] ; q = attr size 1",
        "x[n] -> y[n] ; n = size 1", "x[n] -> y[n] ; n = attr size", "x[n] -> y[n] ; since soon",
        "x[n] -> y[n] ; |..a| = attr axis 1", "x[n] -> y[n] |", "x[n] -> y[n] ; ", "x[..] -> y[n]",
        "x[n] -> y[n] ]"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

/// It counts in multiply-adds alone.
TEST(Notation, AttributesCountUnderANameOfNoOperand) {
  const Alternative a = only("x[t h] w[e h] -> y[t h] ; k = attr top 1 ; macs x k");
  EXPECT_EQ(a.bindings[0].attribute, "top");
  EXPECT_NE(error_of("x[t h] -> y[t h] ; k = attr top 1"), "");
}

/// A clause about an operand that is not there would silently do nothing.
TEST(Notation, ClausesNameOperandsThatThereAre) {
  EXPECT_NE(error_of("x[n] -> y[n] ; macs w"), "");
  EXPECT_NE(error_of("x[n] -> y[n] ; swap w transA"), "");
}

}  // namespace
}  // namespace parsimony::notation
