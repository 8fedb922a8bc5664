// Which axis of an output has the classes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "parsimony/training/loop/target_loss.h"
#include "tests/support/message_of.h"

namespace parsimony::training {
namespace {

at::Tensor labels(at::IntArrayRef dims) { return at::zeros(dims, at::kLong); }

TEST(ClassRows, OfSamples) {
  const at::Tensor outputs = at::randn({4, 10});
  EXPECT_TRUE(at::equal(class_rows(outputs, labels({4})), outputs));
}

TEST(ClassRows, OfTokensAndOfPixels) {
  const at::Tensor tokens = at::randn({2, 5, 7});
  EXPECT_TRUE(at::equal(class_rows(tokens, labels({2, 5})), tokens.reshape({10, 7})));
  const at::Tensor pixels = at::randn({2, 7, 3, 4});
  EXPECT_TRUE(at::equal(class_rows(pixels, labels({2, 3, 4})),
                        pixels.permute({0, 2, 3, 1}).reshape({24, 7})));
}

TEST(ClassRows, NothingElseFits) {
  EXPECT_FALSE(class_rows(at::randn({4, 10}), labels({5})).defined());
  EXPECT_FALSE(class_rows(at::randn({4, 10, 2}), labels({4})).defined());
  EXPECT_FALSE(class_rows(at::randn({2, 5, 7}), labels({2, 6})).defined());
}

TEST(ClassRows, SaysWhatDoesNotFit) {
  EXPECT_EQ(class_rows(at::randn({4, 10}), labels({4}), 10).size(1), 10);
  const auto message = [](at::IntArrayRef outputs, int64_t classes) {
    return test::message_of([&] { class_rows(at::randn(outputs), labels({4}), classes); });
  };
  EXPECT_NE(
      message({4, 10, 2}, 10)
          .find("the outputs have shape [4, 10, 2], the data has 10 classes and labels of [4]"),
      std::string::npos);
  EXPECT_NE(message({4, 3}, 10).find("the data has 10 classes"), std::string::npos);
}

TEST(ClassRows, LossIsTheMeanOverRows) {
  const at::Tensor rows = at::zeros({6, 8});
  EXPECT_NEAR(cross_entropy(rows, labels({2, 3})).item<double>(), std::log(8.0), 1e-6);
  at::Tensor some = at::full({6}, kNoLabel, at::kLong);
  EXPECT_EQ(cross_entropy(rows, some).item<double>(), 0) << "nothing counts";
  some[4] = 1;
  EXPECT_NEAR(cross_entropy(rows, some).item<double>(), std::log(8.0), 1e-6);
}

}  // namespace
}  // namespace parsimony::training
