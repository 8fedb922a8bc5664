// Files of rules: what they say, and where they are wrong.
#include "parsimony/graph/operators/rules_file.h"

#include <gtest/gtest.h>

#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "tests/support/temporary_folder.h"

namespace parsimony {
namespace {

std::string fault_in(const std::string& text) {
  try {
    parse_rules(text, "my.rules");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RulesFile, SayAllThatARowSays) {
  const auto rules = parse_rules(
      "# Comments and empty lines may stand anywhere.\r\n"
      "\n"
      "operator rules.a::Dense   # the domain has a point\n"
      "\tlinear matrix-product weight w bias b layer Gemm plain\n"
      "  integers w scale ws zero-point wz bits width\n"
      "  data x\n"
      "  line x[..b i] w[o i] b[o]? ws[o]? wz[o]? -> y[..b o] ; macs x o\n"
      "  traits sums   homogeneous\n"
      "  scale alpha\n"
      "operator rules.a::Norm\n"
      "  line x[n c ..s] g[c] b[c] m[c] v[c] -> y[n c ..s]\n"
      "  norm gain g shift b statistics m\n"
      "  zero normalised\n"
      "  result of-second\n"
      "operator ai.onnx::NotInTheTable\n"
      "  line x[c] -> y[c]",
      "my.rules");
  ASSERT_EQ(rules.size(), 3U);
  const OpSchema dense = rules[0].row();
  EXPECT_EQ(dense.domain, "rules.a");
  EXPECT_EQ(dense.op, "Dense");
  EXPECT_EQ(dense.line, "x[..b i] w[o i] b[o]? ws[o]? wz[o]? -> y[..b o] ; macs x o");
  EXPECT_EQ(dense.linear.kind, LinearKind::kMatrixProduct);
  EXPECT_EQ(dense.linear.weights, 2U);
  EXPECT_EQ(dense.linear.bias, 2);
  EXPECT_EQ(dense.linear.layer, "Gemm");
  EXPECT_TRUE(dense.linear.plain);
  EXPECT_EQ(dense.zero, ZeroBehaviour::kProduct);  // of every layer, unless it says otherwise
  EXPECT_EQ(dense.integers.operand, 1);
  EXPECT_EQ(dense.integers.scale, 3);
  EXPECT_EQ(dense.integers.zero_point, 4);
  EXPECT_EQ(dense.integers.bits, "width");
  EXPECT_EQ(dense.data.operand, 0);
  EXPECT_EQ(dense.traits, kSums | kHomogeneous);
  EXPECT_EQ(dense.scale, "alpha");
  EXPECT_EQ(dense.result, ResultType::kOfFirst);
  const OpSchema norm = rules[1].row();
  EXPECT_EQ(norm.norm.gain, 1);
  EXPECT_EQ(norm.norm.shift, 2);
  EXPECT_EQ(norm.norm.statistics, 3);
  EXPECT_EQ(norm.zero, ZeroBehaviour::kNormalised);
  EXPECT_EQ(norm.result, ResultType::kOfSecond);
  EXPECT_EQ(rules[2].row().domain, "");
  EXPECT_EQ(rules[2].row().zero, ZeroBehaviour::kZero);
}

TEST(RulesFile, AlternativesAndLongLinesStandBelowEachOther) {
  const auto rules = parse_rules(
      "operator rules.b::Two\n"
      "  line x[n c] -> y[n c]\n"
      "       ; mixes c ; since 2\n"
      "  line x[n c] -> y[n c]\n"
      "       | x[n c ..s] -> y[n c ..s]\n",
      "my.rules");
  EXPECT_EQ(rules.at(0).line,
            "x[n c] -> y[n c] ; mixes c ; since 2 | x[n c] -> y[n c] | x[n c ..s] -> y[n c ..s]");
}

TEST(RulesFile, AnEmptyFileHasNone) {
  EXPECT_TRUE(parse_rules("# nothing\n\n", "my.rules").empty());
}

struct Wrong {
  const char* text;
  const char* error;
};

constexpr Wrong kWrong[] = {
    // The file.
    {"line x[c] -> y[c]\n", "1:1: found \"line\", expected operator DOMAIN::NAME"},
    {"\n  ; mixes c\n", "2:3: there is no notation to go on with"},
    {"operator\n", "1:9: expected a name such as acme::Gelu"},
    {"operator rules.c::\n", "1:10: expected a name such as acme::Gelu"},
    {"operator rules.c::A B\n", "1:21: \"B\" is too much"},
    {"# x\noperator rules.c::A\n", "2:10: lacks a \"line\" with its notation"},
    {"operator Conv\n", "1:10: operator \"Conv\" has a rule already"},
    {"operator ai.onnx::Conv\n", "1:10: operator \"Conv\" has a rule already"},
    {"operator rules.c::A\nline x[c] -> y[c]\noperator rules.c::A\nline x[c] -> y[c]\n",
     "3:10: operator \"rules.c::A\" has a rule already"},
    // Words.
    {"operator rules.c::A\n  lines x[c] -> y[c]\n",
     "2:3: unknown word \"lines\". Did you mean \"line\"?"},
    {"operator rules.c::A\n  opset 3\n",
     "2:3: unknown word \"opset\", expected \"operator\", \"line\", \"zero\", \"result\", "
     "\"traits\", "
     "\"scale\", \"linear\", \"norm\", \"integers\" or \"data\""},
    {"operator rules.c::A\n  zero first\n  zero first\n", "3:3: \"zero\" stands twice"},
    {"operator rules.c::A\n  zero none\n",
     "2:8: found \"none\", expected \"constant\", \"first\", \"normalised\", \"product\", "
     "\"quotient\", \"shifted\", \"undefined\", \"zero\" or \"zeros\""},
    {"operator rules.c::A\n  zero # later\n",
     "2:7: expected \"constant\", \"first\", \"normalised\", \"product\", \"quotient\", "
     "\"shifted\", "
     "\"undefined\", \"zero\" or \"zeros\""},
    {"operator rules.c::A\n  zero first last\n", "2:14: \"last\" is too much"},
    {"operator rules.c::A\n  result float\n",
     "2:10: found \"float\", expected \"bool\", \"int64\", \"of-first\", \"of-second\" or "
     "\"second-is-int64\""},
    {"operator rules.c::A\n  scale\n", "2:8: expected an attribute"},
    {"operator rules.c::A\n  norm gains g\n",
     "2:8: unknown word \"gains\". Did you mean \"gain\"?"},
    {"operator rules.c::A\n  integers\n", "2:11: expected an operand of the notation"},
    {"operator rules.c::A\n  integers w point z\n",
     "2:14: unknown word \"point\". Did you mean \"zero-point\"?"},
    {"operator rules.c::A\n  linear lookup weight\n", "2:23: expected an operand of the notation"},
    // The notation.
    {"operator rules.c::A\n  line\n", "2:7: expected the notation: x[..s] -> y[..s]"},
    {"operator rules.c::A\n  line x[n c -> y[n c]\n", "2:14: expected a name"},
    {"operator rules.c::A\n  line x[n c] -> y[n c\n", "2:23: expected a name"},
    {"operator rules.c::A\n  line x[n 0] -> y[n]\n", "2:12: expected a label, or a size"},
    {"operator rules.c::A\n  line x[n 2c] -> y[n]\n", "2:12: expected a label, or a size"},
    {"operator rules.c::A\n  line x[n c] -> y[n c]\n    ; pin q\n", "3:11: 'q' is not there"},
    {"operator rules.c::A\n  line x[q] -> y[q] ; pin q\n  line x[c] -> y[c] ; pin c q\n",
     "3:29: 'q' is not there"},
    {"operator rules.c::A\n  line x[q] -> y[q]\n  line x[c] -> y[c]\n    ; role head q h\n",
     "4:19: 'h' is not there"},
    {"operator rules.c::A\n  line x[c] -> y[c] ; g = attr group 1\n", "2:23: 'g' is not there"},
    {"operator rules.c::A\n  line x[c] -> y[c] ; |..a| = attr axis 1\n", "2:26: 'a' is not there"},
    {"operator rules.c::A\n  line x[c] -> y[c] ; macs x w\n", "2:30: 'w' is not there"},
    {"operator rules.c::A\n  line x[a b] -> y[a b] ; swap w trans\n", "2:32: 'w' is not there"},
    {"operator rules.c::A\n  line x[c] ->\n", "1:10: the notation has no result behind ->"},
    {"operator rules.c::A\n  line -> y[3]\n",
     "1:10: the notation wants an operand in front that is always there"},
    {"operator rules.c::A\n  line x[c]? -> y[c]\n",
     "1:10: the notation wants an operand in front that is always there"},
    {"operator rules.c::A\n  line x[c] x[c] -> y[c]\n", "1:10: two operands are called \"x\""},
    {"operator rules.c::A\n  line x*[c] b[c] -> y[c]\n",
     "1:10: operand \"x\" is not the last, so it cannot stand for several"},
    // Operands.
    {"operator rules.c::A\n  linear matrix-product weight v\n  line x[i] w[o i] -> y[o]\n",
     "2:32: the notation has no operand \"v\""},
    {"operator rules.c::A\n  line x[i] w[o i] -> y[o]\n  line w[o i] x[i] -> y[o]\n"
     "  linear matrix-product weight w\n",
     "4:32: operand \"w\" stands at different places in the alternatives"},
    {"operator rules.c::A\n  line x[c] -> y[c]\n  traits adds\n",
     "1:10: a layer, a sum, a product or a quotient has two operands or more"},
    {"operator rules.c::A\n  line x[c] m[c] -> y[c]\n  norm statistics m\n",
     "1:10: the operand behind the statistics must be the variance"},
};

TEST(RulesFile, SayLineAndColumnOfEveryFault) {
  for (const Wrong& wrong : kWrong) {
    EXPECT_EQ(fault_in(wrong.text), std::string("my.rules:") + wrong.error) << wrong.text;
  }
}

TEST(RulesFile, AreAddedAllOrNone) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "own.rules";
  const std::string good = "operator rules.d::Good\n  line x[..s] -> y[..s]\n  traits chooses\n";
  write_file(path, good + "operator rules.d::Bad\n  line x[\n");
  EXPECT_THROW(add_rules(path), ConfigError);
  EXPECT_EQ(find_schema("rules.d", "Good"), nullptr);
  write_file(path, good);
  add_rules(path);
  const OpSchema* row = find_schema("rules.d", "Good");
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->has(kChooses));
  ASSERT_NE(compiled(*row), nullptr);
  EXPECT_THROW(add_rules(folder / "none.rules"), IoError);
}

}  // namespace
}  // namespace parsimony
