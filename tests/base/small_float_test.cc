#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parsimony/base/types.h"

namespace parsimony {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(SmallFloats, StandForTheNumbersOfTheirFormat) {
  const auto& e4m3 = small_floats(DType::kFloat8E4M3FN);
  EXPECT_EQ(e4m3[0x01], 0x1p-9F);
  EXPECT_EQ(e4m3[0x08], 0x1p-6F);
  EXPECT_EQ(e4m3[0x38], 1);
  EXPECT_EQ(e4m3[0xbc], -1.5F);
  EXPECT_EQ(e4m3[0x7e], 448);
  EXPECT_TRUE(std::isnan(e4m3[0x7f]));
  EXPECT_TRUE(std::isnan(e4m3[0xff]));
  const auto& e4m3z = small_floats(DType::kFloat8E4M3FNUZ);
  EXPECT_EQ(e4m3z[0x40], 1);
  EXPECT_EQ(e4m3z[0x7f], 240);
  EXPECT_TRUE(std::isnan(e4m3z[0x80]));
  const auto& e5m2 = small_floats(DType::kFloat8E5M2);
  EXPECT_EQ(e5m2[0x01], 0x1p-16F);
  EXPECT_EQ(e5m2[0x7b], 57344);
  EXPECT_EQ(e5m2[0xfc], -kInfinity);
  EXPECT_TRUE(std::isnan(e5m2[0x7d]));
  EXPECT_EQ(small_floats(DType::kFloat8E5M2FNUZ)[0x7f], 57344);
  const auto& e2m1 = small_floats(DType::kFloat4E2M1);
  for (const int high : {0, 0x10}) EXPECT_EQ(e2m1[static_cast<size_t>(high + 0xf)], -6);
  EXPECT_EQ(e2m1[1], 0.5F);
}

TEST(SmallFloats, AreRoundedToTheNearest) {
  EXPECT_EQ(nearest_small_float(DType::kFloat8E4M3FN, 1.06), 0x38);
  EXPECT_EQ(nearest_small_float(DType::kFloat8E4M3FN, 1.0625), 0x38) << "half way: even";
  EXPECT_EQ(nearest_small_float(DType::kFloat8E4M3FN, 1.1875), 0x3a);
  EXPECT_EQ(nearest_small_float(DType::kFloat8E4M3FN, -1e9), 0xfe);
  EXPECT_EQ(nearest_small_float(DType::kFloat8E5M2, 1e9), 0x7b);
  EXPECT_EQ(nearest_small_float(DType::kFloat8E4M3FN, -0.0), 0x80);
  EXPECT_EQ(nearest_small_float(DType::kFloat8E4M3FNUZ, -0.0), 0);
  EXPECT_EQ(nearest_small_float(DType::kFloat8E4M3FNUZ, NAN), 0x80);
  EXPECT_EQ(nearest_small_float(DType::kFloat8E4M3FN, NAN), 0x7f);
}

TEST(SmallFloats, StandForThemselves) {
  for (const DType type :
       {DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ}) {
    for (int code = 0; code < 256; ++code) {
      const auto value = static_cast<double>(small_floats(type)[static_cast<size_t>(code)]);
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(nearest_small_float(type, value), code);
    }
  }
}

}  // namespace
}  // namespace parsimony
