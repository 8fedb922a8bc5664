#include "parsimony/base/types.h"

#include <gtest/gtest.h>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

TEST(Types, SizesAreThoseOfTheFormat) {
  EXPECT_EQ(size_of(DType::kBool), 1);
  EXPECT_EQ(size_of(DType::kBFloat16), 2);
  EXPECT_EQ(size_of(DType::kUInt32), 4);
  EXPECT_EQ(size_of(DType::kFloat64), 8);
  EXPECT_EQ(size_of(DType::kString), 0);
  EXPECT_EQ(size_of(DType::kUnknown), 0);
}

TEST(Types, NamesAreLowerCase) {
  EXPECT_EQ(name_of(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(name_of(DType::kUInt8), "uint8");
  EXPECT_EQ(name_of(DType::kUnknown), "unknown");
}

TEST(Types, ElementsOfFewBitsHaveAByteEachInMemory) {
  EXPECT_EQ(size_of(DType::kInt4), 1);
  EXPECT_EQ(bits_of(DType::kInt4), 4);
  EXPECT_EQ(bits_of(DType::kUInt2), 2);
  EXPECT_EQ(bits_of(DType::kFloat64), 64);
}

TEST(Types, FourTypesAreFloatingAndFiveSmallOnes) {
  int floating = 0;
  for (int i = 0; i <= static_cast<int>(DType::kString); ++i) {
    floating += is_floating(static_cast<DType>(i)) ? 1 : 0;
  }
  EXPECT_EQ(floating, 9);
  EXPECT_TRUE(is_floating(DType::kFloat16));
  EXPECT_FALSE(is_floating(DType::kInt64));
}

TEST(ElementCount, MultipliesAndKnowsScalars) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({int64_t{1} << 48}), int64_t{1} << 48);
}

TEST(ElementCount, EmptyTensorsHaveOtherDimensionsLikeAnyTensor) {
  EXPECT_EQ(element_count({int64_t{1} << 24, 0, int64_t{1} << 24}), 0);
  EXPECT_THROW(element_count({int64_t{1} << 24, 0, int64_t{1} << 25}), ModelError);
}

TEST(ElementCount, RefusesWhatNoTensorHas) {
  EXPECT_THROW(element_count({2, -1}), ModelError);
  EXPECT_THROW(element_count({0, -1}), ModelError);
  EXPECT_THROW(element_count({int64_t{1} << 48, 2}), ModelError);
  EXPECT_THROW(element_count({int64_t{1} << 62, int64_t{1} << 62}), ModelError);
}

TEST(ShapeText, ListsDimensions) {
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{1, 3, -1}), "[1, 3, -1]");
}

}  // namespace
}  // namespace parsimony
