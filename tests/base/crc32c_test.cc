#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "parsimony/base/hash.h"

namespace parsimony {
namespace {

TEST(Crc32c, OfTheCataloguesCheck) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

// The examples of RFC 3720, B.4.
TEST(Crc32c, OfTheStandardsExamples) {
  std::string ascending(32, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eU);
}

}  // namespace
}  // namespace parsimony
