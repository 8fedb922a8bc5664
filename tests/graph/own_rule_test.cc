#include <gtest/gtest.h>

#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

template <typename Add>
std::string error_of(const Add& add) {
  try {
    add();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OwnRule, IsFoundBesideTheTable) {
  EXPECT_EQ(find_schema("com.example", "Swish"), nullptr);
  {
    const std::string domain = "com.example";  // the texts need not stay
    const std::string line = "x[..s] -> y[..s]";
    add_operator({.op = "Swish", .line = line, .domain = domain});
  }
  const OpSchema* rule = find_schema("com.example", "Swish");
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->op, "Swish");
  EXPECT_EQ(rule->line, "x[..s] -> y[..s]");
  ASSERT_NE(compiled(*rule), nullptr);
  EXPECT_EQ(compiled(*rule)->alternatives.size(), 1U);
  EXPECT_EQ(find_schema("com.microsoft", "Swish"), nullptr);
}

TEST(OwnRule, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] { add_operator({.op = "Conv", .line = "x[c] -> y[c]"}); }),
            "operator \"Conv\" has a rule already");
  add_operator({.op = "Twice", .line = "x[c] -> y[c]", .domain = "com.example"});
  EXPECT_EQ(error_of([] {
              add_operator({.op = "Twice", .line = "x[c] -> y[c]", .domain = "com.example"});
            }),
            "operator \"com.example::Twice\" has a rule already");
  EXPECT_EQ(error_of([] {
              add_operator({.op = "Odd", .line = "x[c -> y[c]"});
            }).rfind("rule of \"Odd\": ", 0),
            0U);
}

}  // namespace
}  // namespace parsimony
