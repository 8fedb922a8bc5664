#include "parsimony/speedup/proof.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace parsimony {
namespace {

TEST(Proof, HoldsWithinTheTolerance) {
  Proof proof;
  proof.outputs = {{"a", 1e-5, 1e-4}, {"b", 1e-4, 1e-4}};
  EXPECT_TRUE(proof.holds());
  EXPECT_EQ(proof.worst()->name, "b");
}

TEST(Proof, FailsBeyondItAndForNaN) {
  Proof proof;
  proof.outputs = {{"a", 2e-4, 1e-4}, {"b", 0, 1e-4}};
  EXPECT_FALSE(proof.holds());
  EXPECT_EQ(proof.worst()->name, "a");
  proof.outputs = {{"a", 1e-5, 1e-4}, {"b", std::nan(""), 1e-4}};
  EXPECT_FALSE(proof.holds());
  EXPECT_EQ(proof.worst()->name, "b");
}

TEST(Proof, CountsWhatTheSmallNetworkChoseFrom) {
  Proof proof;
  proof.outputs = {{"a", 1e-5, 1e-4}};
  proof.choices = {{"TopK", 2e-5, 1e-4}};
  EXPECT_TRUE(proof.holds());
  EXPECT_EQ(proof.worst()->name, "TopK");
  proof.choices[0].difference = 2e-4;
  EXPECT_FALSE(proof.holds());
}

TEST(Proof, WithoutARunThereIsNone) {
  Proof proof;
  proof.not_run = "the operator is unknown";
  EXPECT_FALSE(proof.holds());
}

TEST(FirstGuilty, FindsThePartWithWhichItBegins) {
  for (size_t guilty = 0; guilty < 9; ++guilty) {
    int asked = 0;
    const auto differs = [&](size_t n) {
      ++asked;
      return n > guilty;
    };
    EXPECT_EQ(first_guilty(9, differs), guilty);
    EXPECT_LE(asked, 4);
  }
}

TEST(FirstGuilty, OfOnePartItIsThatOne) {
  EXPECT_EQ(first_guilty(1, [](size_t) { return true; }), 0U);
  EXPECT_EQ(first_guilty(0, [](size_t) { return true; }), 0U);
}

}  // namespace
}  // namespace parsimony
