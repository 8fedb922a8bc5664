#include <gtest/gtest.h>

#include "parsimony/base/hash.h"

namespace parsimony {
namespace {

// The examples of FIPS 180-4.
TEST(Sha256, OfTheStandardsExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, InPiecesTheSame) {
  const std::string text = "abc";
  Sha256 sum;
  for (const char c : text) sum.add(std::as_bytes(std::span(&c, 1)));
  EXPECT_EQ(sum.hex(), sha256(text));
}

}  // namespace
}  // namespace parsimony
