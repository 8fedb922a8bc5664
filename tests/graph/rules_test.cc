#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "parsimony/graph/notation.h"
#include "parsimony/graph/rule.h"

namespace parsimony {
namespace {

TEST(RuleTable, IsSortedAndHasNoTwins) {
  const auto rules = rule_table();
  for (size_t i = 1; i < rules.size(); ++i) {
    EXPECT_LT(std::pair(rules[i - 1].domain, rules[i - 1].op),
              std::pair(rules[i].domain, rules[i].op))
        << rules[i].op;
  }
}

TEST(RuleTable, FindsEveryRuleAndNoOther) {
  for (const Rule& rule : rule_table()) EXPECT_EQ(find_rule(rule.domain, rule.op), &rule);
  EXPECT_EQ(find_rule("", "conv"), nullptr);
  EXPECT_EQ(find_rule("", ""), nullptr);
  EXPECT_EQ(find_rule("", "Zzz"), nullptr);
  EXPECT_EQ(find_rule("com.acme", "Conv"), nullptr);
}

TEST(RuleTable, EveryLineIsWellFormed) {
  for (const Rule& rule : rule_table()) {
    if (rule.line.empty()) {
      EXPECT_EQ(compiled(rule), nullptr) << rule.op;
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
  for (const Rule& rule : rule_table()) {
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
  for (const Rule& rule : rule_table()) {
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
