#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

TEST(RuleTable, FindsEveryRuleAndNoOther) {
  for (const OpSchema& rule : operator_table()) EXPECT_EQ(find_schema(rule.domain, rule.op), &rule);
  EXPECT_EQ(find_schema("", "conv"), nullptr);
  EXPECT_EQ(find_schema("", ""), nullptr);
  EXPECT_EQ(find_schema("", "Zzz"), nullptr);
  EXPECT_EQ(find_schema("com.acme", "Conv"), nullptr);
}

TEST(RuleTable, EveryLineIsWellFormed) {
  for (const OpSchema& rule : operator_table()) {
    if (rule.line.empty()) {
      EXPECT_EQ(compiled(rule), nullptr) << rule.op;
      if (!rule.is_followed()) continue;
      EXPECT_NE(rule.factor, nullptr) << rule.op;
      EXPECT_NE(rule.infer, nullptr) << rule.op;
      continue;
    }
    EXPECT_NO_THROW(notation::parse(rule.line)) << rule.op;
    ASSERT_NE(compiled(rule), nullptr) << rule.op;
    EXPECT_FALSE(compiled(rule)->alternatives.empty()) << rule.op;
  }
}

/// Names of operands are what plans and errors show.
TEST(RuleTable, OperandsOfALineHaveNamesOfTheirOwn) {
  for (const OpSchema& rule : operator_table()) {
    if (rule.line.empty()) continue;
    for (const notation::Alternative& alternative : compiled(rule)->alternatives) {
      std::set<std::string> names;
      for (const auto* side : {&alternative.inputs, &alternative.outputs}) {
        for (const notation::Operand& operand : *side) {
          EXPECT_TRUE(names.insert(operand.name).second) << rule.op << ": " << operand.name;
        }
      }
    }
  }
}

TEST(RuleTable, OnlyTheLastInputIsVariadic) {
  for (const OpSchema& rule : operator_table()) {
    if (rule.line.empty()) continue;
    for (const notation::Alternative& alternative : compiled(rule)->alternatives) {
      for (size_t i = 0; i + 1 < alternative.inputs.size(); ++i) {
        EXPECT_FALSE(alternative.inputs[i].variadic) << rule.op;
      }
    }
  }
}

}  // namespace
}  // namespace parsimony
