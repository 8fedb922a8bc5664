// What augmentation does to each sample.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "parsimony/training/loader/gather_impl.h"
#include "tests/training/loader_support.h"

namespace parsimony::training {
namespace {

using data_test::epoch_of;
using data_test::some_samples;
using data_test::stored;

/// Every input of an epoch, with what it was before.
template <typename Check>
void for_each_augmented(const Samples& samples, const LoaderOptions& options, const Check& check) {
  Loader loader(samples, options);
  for (const Batch& batch : epoch_of(loader, 2)) {
    for (int64_t i = 0; i < batch.labels.size(0); ++i) {
      check(batch.inputs[i], stored(samples, batch.labels[i].item<int64_t>()));
    }
  }
}

TEST(Augmentation, FlipsEveryOtherSampleExactly) {
  const Samples samples = some_samples(400);
  int flipped = 0;
  for_each_augmented(samples, {.batch = 64, .augmentation = {.flip = true}},
                     [&](const at::Tensor& found, const at::Tensor& original) {
                       if (at::equal(found, original)) return;
                       ++flipped;
                       ASSERT_TRUE(at::equal(found, original.flip({2})));
                     });
  EXPECT_GT(flipped, 150);
  EXPECT_LT(flipped, 250);
}

TEST(Augmentation, CropsInsideOfThePaddedImage) {
  const Samples samples = some_samples(300);
  std::vector<int> seen(25);
  for_each_augmented(samples, {.batch = 64, .augmentation = {.crop = 2}},
                     [&](const at::Tensor& found, const at::Tensor& original) {
                       const at::Tensor padded = at::constant_pad_nd(original, {2, 2, 2, 2}, 0);
                       int matches = 0;
                       for (int64_t place = 0; place < 25; ++place) {
                         const auto window = padded.narrow(1, place / 5, 8).narrow(2, place % 5, 6);
                         if (!at::equal(found, window)) continue;
                         ++matches;
                         ++seen[place];
                       }
                       ASSERT_EQ(matches, 1);
                     });
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 0);
}

TEST(Augmentation, CutsSquaresOut) {
  const Samples samples = some_samples(300);
  int64_t whole = 0;
  for_each_augmented(
      samples,
      {.batch = 64,
       .augmentation = {.cutout = 3},
       .scale = 1.0 / 255,
       .mean = {0.0, 0.0, 0.0},
       .deviation = {1.0 / 255, 1.0 / 255, 1.0 / 255}},
      [&](const at::Tensor& found, const at::Tensor& original) {
        const at::Tensor cut = found == 0;  // no stored value is 0
        EXPECT_TRUE(at::allclose(found.masked_select(~cut), original.masked_select(~cut)));
        const int64_t rows = cut[0].any(1).sum().item<int64_t>();
        const int64_t columns = cut[0].any(0).sum().item<int64_t>();
        ASSERT_GE(rows, 2);  // its centre is inside
        ASSERT_LE(rows, 3);
        ASSERT_GE(columns, 2);
        ASSERT_LE(columns, 3);
        for (int64_t c = 0; c < 3; ++c) ASSERT_EQ(cut[c].sum().item<int64_t>(), rows * columns);
        if (rows * columns == 9) ++whole;
      });
  EXPECT_GT(whole, 75);
}

TEST(Augmentation, FillsWithTheMean) {
  const Samples samples = some_samples(2);
  Loader loader(samples, {.batch = 2,
                          .augmentation = {.cutout = 6},
                          .scale = 1.0 / 255,
                          .mean = {0.2, 0.4, 0.6},
                          .deviation = {1, 1, 1}});
  const at::Tensor inputs = epoch_of(loader, 0)[0].inputs;
  // 0.2, 0.4 and 0.6 of 255 are whole numbers. A sixth of the image is covered wherever it lies.
  EXPECT_GE((inputs.abs() < 1e-6).sum().item<int64_t>(), inputs.numel() / 6);
}

TEST(Augmentation, OneOptionDoesNotChangeAnother) {
  const Samples samples = some_samples(64);
  const LoaderOptions flip{.augmentation = {.flip = true}};
  const LoaderOptions both{.augmentation = {.flip = true, .cutout = 1}};
  std::vector<std::byte> flipped(samples.values.size());
  std::vector<std::byte> changed(samples.values.size());
  Gatherer(samples, flip).gather(0, samples.labels, flipped.data());
  Gatherer(samples, both).gather(0, samples.labels, changed.data());
  int64_t different = 0;
  for (size_t i = 0; i < flipped.size(); ++i) different += flipped[i] != changed[i] ? 1 : 0;
  EXPECT_EQ(different, samples.count() * 3);  // one pixel each
}

}  // namespace
}  // namespace parsimony::training
