#include <gtest/gtest.h>

#include "parsimony/report/speedup.h"

namespace parsimony {
namespace {

Proof proof_with_choices(size_t count) {
  Proof proof;
  proof.inputs = 3;
  proof.outputs = {{"boxes", 2e-7, 1e-4}};
  for (size_t i = 0; i < count; ++i) {
    proof.choices.push_back({"TopK " + std::to_string(i), 1e-7 * static_cast<double>(i), 1e-4});
  }
  return proof;
}

TEST(ProofText, SaysWhereTheOriginalsNumbersWereChosenFrom) {
  const std::string text = to_text(proof_with_choices(1));
  EXPECT_EQ(text.find("Proven: largest difference 2.0e-07"), 0U) << text;
  EXPECT_NE(text.find("used the original's operands at 1 place such as"), std::string::npos);
  EXPECT_EQ(to_text(proof_with_choices(0)).find("chose"), std::string::npos);
}

TEST(ProofText, ListsOutputsAndTheChoicesThatDifferMost) {
  const std::string text = to_text(proof_with_choices(7), true);
  EXPECT_NE(text.find("boxes"), std::string::npos);
  EXPECT_LT(text.find("TopK 6"), text.find("TopK 2"));
  EXPECT_EQ(text.find("TopK 1"), std::string::npos);
  EXPECT_NE(text.find("and 2 choices that differ less"), std::string::npos) << text;
}

}  // namespace
}  // namespace parsimony
