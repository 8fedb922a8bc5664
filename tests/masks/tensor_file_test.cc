#include "parsimony/masks/tensor_file.h"

#include <gtest/gtest.h>

#include <array>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

constexpr std::array<std::byte, 4> kBytes = {std::byte{1}, std::byte{2}, std::byte{3},
                                             std::byte{4}};

TEST(TensorFile, ReadsWhatItWroteOfEveryType) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                           DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8,
                           DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kBool}) {
    std::vector<std::byte> data(3 * size_of(type), std::byte{7});
    const std::string file = tensor_file({{"b", type, {3, 1}, data}, {"a", DType::kInt8, {0}, {}}});
    const std::vector<FileTensor> read = parse_tensors(file, "f");
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(read[0].name, "a");
    EXPECT_EQ(read[1].dtype, type);
    EXPECT_EQ(read[1].dims, (Shape{3, 1}));
    EXPECT_TRUE(std::equal(read[1].data.begin(), read[1].data.end(), data.begin(), data.end()));
  }
}

TEST(TensorFile, RefusesWhatTheFormatCannotHold) {
  const FileTensor tensor{"a", DType::kInt8, {4}, kBytes};
  EXPECT_NO_THROW(tensor_file({tensor}));
  EXPECT_THROW(tensor_file({tensor, tensor}), ModelError);
  EXPECT_THROW(tensor_file({{"a", DType::kInt16, {4}, kBytes}}), ModelError);
  EXPECT_THROW(tensor_file({{"a", DType::kString, {4}, kBytes}}), ModelError);
  EXPECT_THROW(tensor_file({{"a", DType::kUnknown, {4}, kBytes}}), ModelError);
}

}  // namespace
}  // namespace parsimony
