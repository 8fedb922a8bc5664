#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/elements/rule.h"

namespace parsimony {
namespace {

std::string error_of(std::string_view criterion) {
  try {
    element_rule(criterion);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ElementRule, ReadsNamesAndTheirNumbers) {
  EXPECT_EQ(element_rule("level"), ElementRule{ElementMethod::kLevel});
  EXPECT_EQ(element_rule("nm"), (ElementRule{ElementMethod::kNm, {2, 4}}));
  EXPECT_EQ(element_rule("2:4"), (ElementRule{ElementMethod::kNm, {2, 4}}));
  EXPECT_EQ(element_rule("nm:1:8"), (ElementRule{ElementMethod::kNm, {1, 8}}));
  EXPECT_EQ(element_rule("block:4x1"), (ElementRule{ElementMethod::kBlock, {}, 4, 1}));
  EXPECT_EQ(element_rule("wanda_elements"), ElementRule{ElementMethod::kWanda});
  EXPECT_EQ(element_rule("sparsegpt:2:4"), (ElementRule{ElementMethod::kSparseGpt, {2, 4}}));
  EXPECT_EQ(element_rule("l1"), std::nullopt);
}

TEST(ElementRule, TheRowOfTheTableIsFoundByTheNameAlone) {
  EXPECT_EQ(find_criterion("2:4").name, "nm");
  EXPECT_EQ(find_criterion("block:4x1").name, "block");
  EXPECT_EQ(find_criterion("sparsegpt:2:4").name, "sparsegpt");
  EXPECT_THROW(find_criterion("l1:2:4"), ConfigError);
  EXPECT_DOUBLE_EQ((NmPattern{2, 4}).ratio(), 0.5);
  EXPECT_EQ(to_text(NmPattern{1, 8}), "1:8");
}

TEST(ElementRule, SaysWhatItWants) {
  const std::string requested =
      ": expected N:M, N of every M elements stay, 1 <= N < M: \"2:4\", \"sparsegpt:2:4\"";
  for (const char* criterion : {"4:4", "0:4", "2:", "2:4:8", "2", "nm:x", "sparsegpt:2x4"}) {
    EXPECT_EQ(error_of(criterion), "criterion \"" + std::string(criterion) + "\"" + requested);
  }
  for (const char* criterion : {"block", "block:4", "block:4x", "block:0x1", "block:4x1x1"}) {
    EXPECT_EQ(error_of(criterion), "criterion \"" + std::string(criterion) +
                                       "\": expected the size of a block, output rows x input "
                                       "columns: \"block:4x1\"");
  }
  EXPECT_NE(error_of("level:2"), "no error");
}

}  // namespace
}  // namespace parsimony
