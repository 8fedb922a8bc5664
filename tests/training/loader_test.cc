// Batches: complete, repeatable, and augmented as the options say.
#include "parsimony/training/loader/loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <thread>

#include "parsimony/base/errors.h"
#include "parsimony/training/loader/gather_impl.h"
#include "parsimony/training/loader/queue_impl.h"
#include "parsimony/training/loader/resident_impl.h"
#include "tests/training/loader_support.h"

namespace parsimony::training {
namespace {

using data_test::epoch_of;
using data_test::some_samples;
using data_test::stored;

std::vector<int64_t> labels_of(const std::vector<Batch>& batches) {
  std::vector<int64_t> labels;
  for (const Batch& batch : batches) {
    const auto* begin = batch.labels.data_ptr<int64_t>();
    labels.insert(labels.end(), begin, begin + batch.labels.numel());
  }
  return labels;
}

TEST(Loader, GivesEverySampleOnceInRandomOrder) {
  const Samples samples = some_samples(103);
  Loader loader(samples, {.batch = 10});
  const auto batches = epoch_of(loader, 0);
  ASSERT_EQ(batches.size(), 11U);
  EXPECT_EQ(loader.batches(), 11);
  EXPECT_EQ(batches.back().inputs.size(0), 3);
  for (size_t i = 0; i < batches.size(); ++i) EXPECT_EQ(batches[i].index, static_cast<int64_t>(i));
  std::vector<int64_t> labels = labels_of(batches);
  EXPECT_FALSE(std::is_sorted(labels.begin(), labels.end()));
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(labels, samples.labels);
}

TEST(Loader, PairsInputsWithTheirLabels) {
  const Samples samples = some_samples(20);
  Loader loader(samples, {.batch = 7, .scale = 0.5});
  for (const Batch& batch : epoch_of(loader, 3)) {
    for (int64_t i = 0; i < batch.labels.size(0); ++i) {
      const int64_t label = batch.labels[i].item<int64_t>();
      EXPECT_TRUE(at::equal(batch.inputs[i], stored(samples, label) * 0.5));
    }
  }
}

TEST(Loader, TokensStayIndicesAndEachHasItsLabel) {
  Samples samples;
  samples.dims = {3};
  samples.label_dims = {3};
  for (int i = 0; i < 6; ++i) samples.values.push_back(static_cast<std::byte>(250 + i));
  samples.labels = {251, 252, 253, 254, 255, 0};
  ASSERT_EQ(samples.count(), 2);
  Dataset data;
  data.tokens = true;
  Loader loader(samples, with_scale_of(data, {.batch = 1, .shuffle = false}));
  const std::vector<Batch> batches = epoch_of(loader, 0);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_TRUE(at::equal(batches[1].inputs, at::tensor({253, 254, 255}, at::kLong).unsqueeze(0)));
  EXPECT_TRUE(at::equal(batches[1].labels, at::tensor({254, 255, 0}, at::kLong).unsqueeze(0)));
}

TEST(Loader, OrderDependsOnSeedAndEpoch) {
  const Samples samples = some_samples(50);
  Loader loader(samples, {.batch = 10, .seed = 1});
  Loader same(samples, {.batch = 10, .seed = 1, .prefetch = 0});
  Loader other(samples, {.batch = 10, .seed = 2});
  const auto first = labels_of(epoch_of(loader, 0));
  EXPECT_EQ(first, labels_of(epoch_of(same, 0)));
  EXPECT_NE(first, labels_of(epoch_of(other, 0)));
  EXPECT_NE(first, labels_of(epoch_of(loader, 1)));
  EXPECT_EQ(first, labels_of(epoch_of(loader, 0)));
}

TEST(Loader, GoesOnWhereAnotherStopped) {
  const Samples samples = some_samples(100);
  const LoaderOptions options{
      .batch = 8, .seed = 5, .augmentation = {.flip = true, .crop = 2, .cutout = 3}};
  Loader undisturbed(samples, options);
  epoch_of(undisturbed, 0);
  const auto whole = epoch_of(undisturbed, 1);
  Loader resumed(samples, options);
  const auto rest = epoch_of(resumed, 1, 5);
  ASSERT_EQ(rest.size() + 5, whole.size());
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i].index, whole[i + 5].index);
    EXPECT_TRUE(at::equal(rest[i].inputs, whole[i + 5].inputs));
    EXPECT_TRUE(at::equal(rest[i].labels, whole[i + 5].labels));
  }
}

TEST(Loader, LeavesAnEpochUnderWay) {
  const Samples samples = some_samples(100);
  Loader loader(samples, {.batch = 4, .shuffle = false, .prefetch = 2});
  loader.start(0);
  ASSERT_EQ(loader.next()->index, 0);
  loader.start(1, 9);
  EXPECT_EQ(loader.next()->index, 9);
}

TEST(Loader, HasNothingBeforeTheStartAndBeyondTheEnd) {
  const Samples samples = some_samples(8);
  for (const int64_t prefetch : {0, 2}) {
    Loader loader(samples, {.batch = 4, .prefetch = prefetch});
    EXPECT_FALSE(loader.next());
    EXPECT_EQ(epoch_of(loader, 0).size(), 2U);
    EXPECT_FALSE(loader.next());
    EXPECT_TRUE(epoch_of(loader, 0, 2).empty());
  }
}

TEST(Loader, DropsWhatDoesNotFillABatch) {
  const Samples samples = some_samples(23);
  Loader loader(samples, {.batch = 5, .drop_last = true});
  EXPECT_EQ(loader.batches(), 4);
  const auto batches = epoch_of(loader, 0);
  ASSERT_EQ(batches.size(), 4U);
  EXPECT_EQ(batches.back().inputs.size(0), 5);
}

TEST(Loader, EvaluatesInOrderUnchangedAndComplete) {
  const Samples samples = some_samples(23);
  Loader loader(samples, for_evaluation({.batch = 5,
                                         .drop_last = true,
                                         .augmentation = {.flip = true, .crop = 2, .cutout = 2}}));
  const auto batches = epoch_of(loader, 4);
  EXPECT_EQ(labels_of(batches), samples.labels);
  EXPECT_TRUE(at::equal(batches[1].inputs[2], stored(samples, 7)));
}

TEST(Loader, Normalises) {
  const Samples samples = some_samples(6);
  Loader loader(samples, for_evaluation({.batch = 6,
                                         .scale = 1.0 / 255,
                                         .mean = {0.1, 0.5, 0.9},
                                         .deviation = {0.2, 0.25, 0.5}}));
  const at::Tensor inputs = epoch_of(loader, 0)[0].inputs;
  const at::Tensor mean = at::tensor({0.1F, 0.5F, 0.9F}).reshape({3, 1, 1});
  const at::Tensor deviation = at::tensor({0.2F, 0.25F, 0.5F}).reshape({3, 1, 1});
  for (int64_t i = 0; i < 6; ++i) {
    const at::Tensor expected = (stored(samples, i) / 255 - mean) / deviation;
    EXPECT_TRUE(at::allclose(inputs[i], expected, 1e-5, 1e-5));
  }
}

TEST(Loader, GivesOtherFormatsOfTheSameNumbers) {
  const Samples samples = some_samples(6);
  const LoaderOptions plain{.batch = 6, .scale = 1.0 / 255};
  Loader loader(samples, plain);
  const at::Tensor expected = epoch_of(loader, 0)[0].inputs;
  EXPECT_TRUE(expected.is_contiguous());
  for (const c10::ScalarType dtype : {c10::kFloat, c10::kBFloat16, c10::kHalf}) {
    LoaderOptions options = plain;
    options.channels_last = true;
    options.dtype = dtype;
    Loader other(samples, options);
    const at::Tensor inputs = epoch_of(other, 0)[0].inputs;
    EXPECT_TRUE(inputs.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(at::equal(inputs, expected.to(dtype)));
  }
}

TEST(Loader, DevicesScaleAsTheCpuDoes) {
  const Samples samples = some_samples(5);
  for (const bool channels_last : {false, true}) {
    const LoaderOptions options{.batch = 5,
                                .shuffle = false,
                                .augmentation = {.flip = true, .crop = 1, .cutout = 2},
                                .channels_last = channels_last,
                                .scale = 1.0 / 255,
                                .mean = {0.1, 0.5, 0.9},
                                .deviation = {0.2, 0.25, 0.5}};
    Loader loader(samples, options);
    const at::Tensor expected = epoch_of(loader, 0)[0].inputs;
    const Gatherer gatherer(samples, options);
    const at::Tensor bytes = at::empty({5, 3, 8, 6}, at::kByte);
    gatherer.gather(0, samples.labels, static_cast<std::byte*>(bytes.data_ptr()));
    const at::Tensor found = DeviceScaling(gatherer, 3, options)(bytes);
    EXPECT_EQ(found.suggest_memory_format(), expected.suggest_memory_format());
    EXPECT_TRUE(at::allclose(found, expected, 1e-6, 1e-6));
  }
}

TEST(Loader, ResidentSamplesGiveTheSameBatches) {
  const Samples images = some_samples(53);
  const Samples rows = some_samples(23, {12});
  const Augmentation all{.flip = true, .crop = 3, .cutout = 4};
  LoaderOptions plain{.batch = 10, .seed = 3};
  LoaderOptions augmented = plain;
  augmented.augmentation = all;
  augmented.scale = 1.0 / 255;
  augmented.mean = {0.4, 0.5, 0.6};
  augmented.deviation = {0.2, 0.3, 0.25};
  augmented.channels_last = true;
  LoaderOptions shared = augmented;
  shared.rank = 1;
  shared.ranks = 3;
  shared.dtype = at::kBFloat16;
  const std::vector<std::pair<const Samples*, LoaderOptions>> cases = {
      {&images, plain}, {&images, augmented}, {&images, shared}, {&rows, plain}};
  for (const auto& [samples, options] : cases) {
    Loader gathering(*samples, options);
    LoaderOptions on_device = options;
    on_device.resident = true;
    Loader resident(*samples, on_device);
    for (const int64_t epoch : {0, 1}) {
      const std::vector<Batch> expected = epoch_of(gathering, epoch, epoch);
      const std::vector<Batch> found = epoch_of(resident, epoch, epoch);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].index, expected[i].index);
        EXPECT_EQ(found[i].of_all, expected[i].of_all);
        EXPECT_TRUE(at::equal(found[i].labels, expected[i].labels));
        EXPECT_EQ(found[i].inputs.scalar_type(), expected[i].inputs.scalar_type());
        const double rounding = options.dtype == at::kBFloat16 ? 1e-2 : 1e-6;
        EXPECT_TRUE(at::allclose(found[i].inputs, expected[i].inputs, rounding, rounding));
      }
    }
  }
}

TEST(Loader, TakesFloatsAndOtherShapes) {
  Samples samples;
  samples.dims = {5};
  samples.dtype = DType::kFloat32;
  const std::vector<float> values = {1, 2, 3, 4, 5, -1, -2, -3, -4, -5};
  const auto bytes = std::as_bytes(std::span(values));
  samples.values.assign(bytes.begin(), bytes.end());
  samples.labels = {1, 0};
  Loader loader(samples, {.batch = 2, .shuffle = false});
  EXPECT_TRUE(at::equal(epoch_of(loader, 0)[0].inputs, at::tensor(values).reshape({2, 5})));
}

TEST(Loader, RefusesOptionsThatCannotBe) {
  const Samples samples = some_samples(4);
  const Samples rows = some_samples(4, {12});
  const auto refused = [](const Samples& from, const LoaderOptions& options) {
    try {
      Loader loader(from, options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(samples, {.batch = 0}), "loader: batch is 0, expected at least 1");
  EXPECT_EQ(refused(samples, {.prefetch = -1}), "loader: prefetch is -1, expected at least 0");
  EXPECT_EQ(refused(samples, {.augmentation = {.crop = 7}}),
            "loader: crop is 7, expected 0 to 6 pixels");
  EXPECT_EQ(refused(rows, {.augmentation = {.flip = true}}),
            "loader: augmentation is on for samples of [12], expected images [c, h, w]");
  EXPECT_EQ(
      refused(rows, {.channels_last = true}),
      "loader: memory format is channels-last for samples of [12], expected images [c, h, w]");
  EXPECT_EQ(refused(samples, {.dtype = c10::kInt}),
            "loader: type of inputs is Int, expected float32, bfloat16, float16 or int64");
  EXPECT_EQ(refused(samples, {.mean = {0.5}, .deviation = {0.5}}),
            "loader: number of means and deviations is 1 and 1, expected 3 of each, or none");
  EXPECT_EQ(refused(samples, {.mean = {0, 0, 0}, .deviation = {1, 0, 1}}),
            "loader: deviation is 0.000000, expected a positive number");
  Samples cut = samples;
  cut.values.pop_back();
  EXPECT_EQ(refused(cut, {}), "loader: size of the samples is 575, expected 576 bytes");
  EXPECT_EQ(refused({}, {}), "loader: number of samples is 0, expected at least 1");
}

TEST(Loader, CountsItsWaiting) {
  const Samples samples = some_samples(64);
  Loader loader(samples, {.batch = 8});
  EXPECT_EQ(loader.wait_seconds(), 0);
  epoch_of(loader, 0);
  const double once = loader.wait_seconds();
  EXPECT_GT(once, 0);
  epoch_of(loader, 1);
  EXPECT_GT(loader.wait_seconds(), once);
}

TEST(BoundedQueue, TakesNoMoreThanFit) {
  BoundedQueue<int> queue(2);
  ASSERT_TRUE(queue.push(1));
  ASSERT_TRUE(queue.push(2));
  bool third = true;
  std::jthread other([&] { third = queue.push(3); });
  queue.cancel();
  other.join();
  EXPECT_FALSE(third);
}

TEST(BoundedQueue, FailuresArriveAfterTheItems) {
  BoundedQueue<int> queue(2);
  queue.push(1);
  queue.end(std::make_exception_ptr(IoError("gone")));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_THROW(queue.pop(), IoError);
}

}  // namespace
}  // namespace parsimony::training
