// Samples of inputs by name.
#include "parsimony/data/sample_source.h"

#include <gtest/gtest.h>

#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "tests/data/data_files.h"
#include "tests/graph/builder.h"
#include "tests/support/arrays.h"
#include "tests/support/temporary_folder.h"

namespace parsimony::test {
namespace {

using Arrays = std::vector<std::pair<std::string, std::string>>;

class InputArrays : public testing::Test {
 protected:
  /// Of inputs x [batch, 2] and ids [batch].
  explicit InputArrays(int64_t batch = -1) {
    net_.output(net_.node("Relu", {net_.input("x", {batch, 2})}, "y"));
    net_.input("ids", {batch}, DType::kInt64);
    finish(net_.graph);
  }

  std::string write(const Arrays& arrays) {
    write_npz(folder_ / "data.npz", arrays);
    return "npz:" + (folder_ / "data.npz");
  }

  SampleSource open(const Arrays& arrays, std::vector<InputSpec> specs = {}) {
    return SampleSource(write(arrays), net_.graph, {.inputs = std::move(specs)});
  }

  std::string error_of(const Arrays& arrays) {
    try {
      const SampleSource data = open(arrays);
      data.inputs(0, data.batch(8));
    } catch (const Error& error) {
      std::string text = error.what();
      const size_t folder = text.find(folder_ / "");
      if (folder != std::string::npos) text.erase(folder, (folder_ / "").size());
      return text;
    }
    return "";
  }

  TemporaryFolder folder_;
  Builder net_;
};

const auto kX = npy<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6});
const auto kIds = npy<int32_t>("<i4", "(3,)", {7, 8, 9});

TEST_F(InputArrays, AreCutIntoRuns) {
  const SampleSource data = open({{"ids", kIds}, {"x", kX}});
  EXPECT_EQ(data.samples(), 3);
  EXPECT_EQ(data.batch(2), 2);
  EXPECT_EQ(data.batch(8), 3);
  EXPECT_FALSE(data.labelled());
  const TensorList inputs = data.inputs(1, 2);
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[0].name, "x");
  EXPECT_EQ(inputs[0].dims, (Shape{2, 2}));
  EXPECT_EQ(elements<float>(inputs[0]), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(inputs[1].dtype, DType::kInt64);
  EXPECT_EQ(elements<int64_t>(inputs[1]), (std::vector<int64_t>{8, 9}));
}

TEST_F(InputArrays, MayHaveLabelsAndFilesOfTheirOwn) {
  write_file(folder_ / "x.npy", kX);
  write_file(folder_ / "i.npy.gz", gzipped(kIds));
  write_file(folder_ / "l.npy", npy<uint8_t>("|u1", "(3,)", {2, 0, 1}));
  const std::string source = "npy:x=" + (folder_ / "x.npy") + ",ids=" + (folder_ / "i.npy.gz") +
                             ",labels=" + (folder_ / "l.npy");
  const SampleSource data(source, net_.graph);
  EXPECT_TRUE(data.labelled());
  EXPECT_EQ(data.labels(1, 2), (std::vector<int64_t>{0, 1}));
}

TEST_F(InputArrays, MaySayWhatOutputsShouldBe) {
  const SampleSource data = open({{"ids", kIds}, {"x", kX}, {"y", kX}});
  EXPECT_TRUE(data.has_target(0));
  EXPECT_FALSE(data.has_target(1));
  const TensorList targets = data.targets(1, 2);
  ASSERT_EQ(targets.size(), 1U);
  EXPECT_EQ(elements<float>(targets[0]), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(error_of({{"x", kX}, {"ids", kIds}, {"y", npy<float>("<f4", "(2,)", {1, 2})}}),
            "npz:data.npz: array \"x\" has 3 samples, \"y\" has 2");
}

TEST_F(InputArrays, AValueStandsInForAnArray) {
  InputSpec nothing;
  nothing.open = true;
  InputSpec four;
  four.open = true;
  four.value = 4;
  const SampleSource data = open({{"x", kX}}, {nothing, four});
  EXPECT_EQ(elements<int64_t>(data.inputs(0, 2)[1]), (std::vector<int64_t>{4, 4}));
}

TEST_F(InputArrays, RandomOnesAreTheSameEachTime) {
  const SampleSource data("random:5", net_.graph);
  EXPECT_EQ(data.samples(), 5);
  EXPECT_EQ(data.inputs(2, 2)[0].dims, (Shape{2, 2}));
  EXPECT_EQ(data.inputs(2, 2)[0].bytes, data.inputs(2, 2)[0].bytes);
  EXPECT_NE(data.inputs(2, 2)[0].bytes, data.inputs(0, 2)[0].bytes);
}

TEST_F(InputArrays, SayWhatIsWrong) {
  EXPECT_EQ(error_of({{"x", kX}}),
            "npz:data.npz: no array for input \"ids\" [-1]; there are \"x\" [3, 2]. To fill it: "
            "--input ids=0");
  EXPECT_EQ(error_of({{"x", kX}, {"ids", npy<int32_t>("<i4", "(2,)", {7, 8})}}),
            "npz:data.npz: array \"x\" has 3 samples, \"ids\" has 2");
  EXPECT_EQ(error_of({{"x", kIds}, {"ids", kIds}}),
            "array \"x\" has shape [3], the input expects [-1, 2] (-1 is any size)");
  EXPECT_EQ(error_of({{"x", kX}, {"ids", kIds}, {"z", kX}}),
            "array \"z\" [3, 2] matches no input; the network has \"x\", \"ids\".");
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of({{"x", npy<float>("<f4", "(3, 2)", {1, 2, 3, nan, 5, 6})}, {"ids", kIds}}),
            "data.npz: x.npy: element 3 is NaN or infinite");
  EXPECT_EQ(
      error_of({{"x", kX}, {"ids", npy<float>("<f4", "(3,)", {1, 2.5, 3})}}),
      "element 1 of array \"ids\" is 2.500000, which the input's type int64 cannot represent");
  EXPECT_EQ(error_of({{"x", kX}, {"ids", kIds}, {"labels", npy<int32_t>("<i4", "(1,)", {7})}}),
            "npz:data.npz: array \"x\" has 3 samples, \"labels\" has 1");
}

/// A network that takes one sample at a time and a state: [1, 2] and [2, 1].
class StepArrays : public InputArrays {
 protected:
  StepArrays() : InputArrays(1) {
    net_.input("state", {2, 1});
    finish(net_.graph);
  }
};

TEST_F(StepArrays, AreSpreadAsTheInputsWant) {
  const Arrays common = {{"x", kX}, {"ids", kIds}};
  Arrays same = common;
  same.emplace_back("state", npy<float>("<f4", "(2, 1)", {8, 9}));
  const SampleSource one = open(same);
  EXPECT_EQ(one.samples(), 3);
  EXPECT_EQ(one.batch(16), 1);
  EXPECT_EQ(elements<float>(one.inputs(2, 1)[2]), (std::vector<float>{8, 9}));
  EXPECT_EQ(elements<float>(one.inputs(2, 1)[0]), (std::vector<float>{5, 6}));
  Arrays each = common;
  each.emplace_back("state", npy<float>("<f4", "(3, 2, 1)", {1, 2, 3, 4, 5, 6}));
  const TensorList last = open(each).inputs(2, 1);
  EXPECT_EQ(last[2].dims, (Shape{2, 1}));
  EXPECT_EQ(elements<float>(last[2]), (std::vector<float>{5, 6}));
}

}  // namespace
}  // namespace parsimony::test
