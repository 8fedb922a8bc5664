// Arrays from files as inputs of a network.
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/data/arrays.h"
#include "parsimony/masks/tensor_file.h"
#include "tests/graph/builder.h"
#include "tests/support/arrays.h"
#include "tests/support/temporary_folder.h"

namespace parsimony::test {
namespace {

class SampleArrays : public testing::Test {
 protected:
  SampleArrays() {
    net_.output(net_.node("Relu", {net_.input("x", {-1, 3})}, "y"));
    net_.input("ids", {2}, DType::kInt64);
    finish(net_.graph);
  }

  std::string write(const std::vector<std::pair<std::string, std::string>>& entries) {
    const std::string path = folder_ / "sample.npz";
    write_npz(path, entries);
    return path;
  }

  std::string error_of(const std::string& path) {
    try {
      place_sample(read_arrays(path), net_.graph);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  Builder net_;
};

TEST_F(SampleArrays, ArePlacedByNameAndConverted) {
  const std::string path = write({{"ids", npy<int32_t>("<i4", "(2,)", {7, -1})},
                                  {"x", npy<double>("<f8", "(1, 3)", {0.5, 1, 2})}});
  const TensorList placed = place_sample(read_arrays("npz:" + path), net_.graph);
  ASSERT_EQ(placed.size(), 2U);
  EXPECT_EQ(placed[0].name, "x");
  EXPECT_EQ(placed[0].dims, (Shape{1, 3}));
  EXPECT_EQ(elements<float>(placed[0]), (std::vector<float>{0.5, 1, 2}));
  EXPECT_EQ(placed[1].dtype, DType::kInt64);
  EXPECT_EQ(elements<int64_t>(placed[1]), (std::vector<int64_t>{7, -1}));
}

TEST_F(SampleArrays, ArePlacedByPositionWithoutNames) {
  const std::string path = write({{"arr_1", npy<int64_t>("<i8", "(2,)", {3, 4})}});
  const TensorList placed = place_sample(read_arrays(path), net_.graph);
  EXPECT_EQ(placed[0].name, "");
  EXPECT_EQ(placed[1].name, "ids");
  const std::vector<InputSpec> specs = with_shapes_of(placed, {});
  ASSERT_EQ(specs.size(), 2U);
  EXPECT_TRUE(specs[0].open);
  EXPECT_FALSE(specs[1].open);
  EXPECT_EQ(specs[1].dims, (Shape{2}));
}

TEST_F(SampleArrays, MayBeSafetensors) {
  const std::vector<float> x = {1, 2, 3};
  const std::string path = folder_ / "sample.safetensors";
  write_tensors(path, {{"x", DType::kFloat32, {1, 3}, std::as_bytes(std::span(x))}});
  EXPECT_EQ(elements<float>(place_sample(read_arrays(path), net_.graph)[0]), x);
}

TEST_F(SampleArrays, SayWhatIsWrong) {
  EXPECT_EQ(error_of("sample.txt"),
            "found \"sample.txt\", expected npy:NAME=FILE,…, npz:FILE or safetensors:FILE, with "
            "one array per input");
  EXPECT_EQ(error_of(write({{"z", npy<float>("<f4", "(1,)", {1})}})),
            "array \"z\" [1] matches no input; the network has \"x\", \"ids\".");
  EXPECT_EQ(error_of(write({{"x", npy<float>("<f4", "(1, 2)", {1, 2})}})),
            "array \"x\" has shape [1, 2], the input expects [-1, 3] (-1 is any size)");
  EXPECT_EQ(
      error_of(write({{"ids", npy<float>("<f4", "(2,)", {1, 0.5})}})),
      "element 1 of array \"ids\" is 0.500000, which the input's type int64 cannot represent");
  const std::string path = write({{"x", npy<float>("<f4", "(1, 3)", {1, 2})}});
  EXPECT_EQ(error_of(path), path +
                                ": x.npy: byte 136: the file ends here; expected 140 bytes for an "
                                "array of [1, 3]");
  EXPECT_NE(error_of(write({{"x", "none"}})).find("not a NumPy array"), std::string::npos);
}

}  // namespace
}  // namespace parsimony::test
