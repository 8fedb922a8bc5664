// Specs, what all data sets share, and the one that is built in.
#include "parsimony/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "parsimony/base/errors.h"
#include "parsimony/base/random.h"
#include "tests/data/data_files.h"

namespace parsimony::test {
namespace {

TEST(Spec, UnknownNamesHaveCandidates) {
  const std::string known =
      "known are cifar10, cifar100, folder, mnist, npy, npz, safetensors, shapes, text. ";
  EXPECT_EQ(failure_of<ConfigError>("cifar:x"),
            "unknown data set \"cifar\"; " + known + "Did you mean \"cifar10\" or \"cifar100\"?");
  EXPECT_EQ(failure_of<ConfigError>("shape"),
            "unknown data set \"shape\"; " + known + "Did you mean \"shapes\"?");
}

TEST(Spec, WithoutLabelsThereIsNothingToTrainWith) {
  const std::string why = failure_of<ConfigError>("images:somewhere");
  EXPECT_TRUE(
      why.starts_with("data \"images:somewhere\": it has no labels for training; expected "
                      "cifar10:DIR, cifar100:DIR, "))
      << why;
}

TEST(Spec, SaysWhatIsExpected) {
  EXPECT_EQ(failure_of<ConfigError>("mnist"), "data \"mnist\": expected mnist:DIR");
  EXPECT_EQ(failure_of<ConfigError>("cifar10:"), "data \"cifar10:\": expected cifar10:DIR");
  EXPECT_EQ(failure_of<ConfigError>("npy:a,b,c"),
            "data \"npy:a,b,c\": expected npy:X,Y or npy:X,Y,XTEST,YTEST");
  for (const char* spec : {"shapes:10", "shapes:10,", "shapes:0,5", "shapes:5,5,5", "shapes:a,b",
                           "shapes:5,-1", "shapes:99999999999999999999,1"}) {
    EXPECT_EQ(failure_of<ConfigError>(spec),
              "data \"" + std::string(spec) +
                  "\": expected shapes:TRAIN,TEST, numbers from 1 to 10000000");
  }
  EXPECT_EQ(failure_of<ConfigError>("shapes:"), "data \"shapes:\": expected shapes[:TRAIN,TEST]");
}

TEST(Spec, OptionsAreChecked) {
  EXPECT_EQ(failure_of<ConfigError>("shapes", {.train_samples = 0}),
            "data: number of training samples is 0, expected at least 1");
  EXPECT_EQ(failure_of<ConfigError>("shapes", {.size = -3}),
            "data: size of images is -3, expected at least 1");
  EXPECT_EQ(failure_of<ConfigError>("shapes", {.test_share = 1}),
            "data: share of test samples is 1.000000, expected more than 0 and less than 1");
}

TEST(Shapes, AreTheSameBytesOnEveryPlatform) {
  EXPECT_EQ(read_dataset("shapes:200,50").fingerprint,
            "165c12ede889f1e19baa8dac60036b8defab411f71aebf35ad6f692426eeb931");
  EXPECT_EQ(read_dataset("shapes:200,50", {.seed = 1}).fingerprint,
            "bba525e99246ddfee7291a8957e408c156ce1e565baf4a2fc0f9247e18f5745f");
}

TEST(Shapes, DoNotDependOnThreadsAndCounts) {
  const Dataset one = read_dataset("shapes:60,20", {.seed = 3, .threads = 1});
  const Dataset four = read_dataset("shapes:60,20", {.seed = 3, .threads = 4});
  EXPECT_EQ(one.fingerprint, four.fingerprint);
  const Dataset more = read_dataset("shapes:100,40", {.seed = 3});
  EXPECT_TRUE(
      std::equal(one.train.values.begin(), one.train.values.end(), more.train.values.begin()));
  EXPECT_TRUE(std::equal(one.test.values.begin(), one.test.values.end(), more.test.values.begin()));
}

TEST(Shapes, AreTenClassesOfColourImages) {
  const Dataset data = read_dataset("shapes:2000,500");
  EXPECT_EQ(data.name, "shapes");
  EXPECT_EQ(data.classes.size(), 10U);
  EXPECT_EQ(data.train.count(), 2000);
  EXPECT_EQ(data.test.count(), 500);
  EXPECT_EQ(data.train.dims, (Shape{3, 32, 32}));
  EXPECT_EQ(data.train.values.size(), 2000U * 3 * 32 * 32);
  EXPECT_DOUBLE_EQ(data.scale, 1.0 / 255);
  for (int64_t label = 0; label < 10; ++label) {
    const auto found = std::count(data.train.labels.begin(), data.train.labels.end(), label);
    EXPECT_GT(found, 140) << data.classes[label];
    EXPECT_LT(found, 260) << data.classes[label];
  }
  std::set<std::string> images;
  for (const Samples* part : {&data.train, &data.test}) {
    for (int64_t i = 0; i < part->count(); ++i) images.insert(values_of(*part, i));
  }
  EXPECT_EQ(images.size(), 2500U);
}

TEST(Dataset, LimitsKeepTheFirst) {
  const Dataset all = read_dataset("shapes:50,20");
  const Dataset some = read_dataset("shapes:50,20", {.train_samples = 10, .test_samples = 30});
  EXPECT_EQ(some.train.count(), 10);
  EXPECT_EQ(some.test.count(), 20);
  EXPECT_EQ(values_of(some.train, 9), values_of(all.train, 9));
  EXPECT_EQ(some.train.values.size(), 10U * 3072);
}

TEST(Dataset, FingerprintSeesLabelsAndValues) {
  TemporaryFolder folder;
  const auto fingerprint = [&](char label, char pixel) {
    std::string record(3073, pixel);
    record[0] = label;
    for (int i = 1; i <= 5; ++i) {
      write(folder / ("data_batch_" + std::to_string(i) + ".bin"), record);
    }
    write(folder / "test_batch.bin", record);
    return read_dataset("cifar10:" + folder / "").fingerprint;
  };
  const std::string first = fingerprint(1, 'a');
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(first, fingerprint(1, 'a'));
  EXPECT_NE(first, fingerprint(2, 'a'));
  EXPECT_NE(first, fingerprint(1, 'b'));
}

TEST(Dataset, MeasuresMeanAndDeviationWhenAsked) {
  EXPECT_TRUE(read_dataset("shapes:5,5").mean.empty());
  TemporaryFolder folder;
  // Red is 0 and 255 by turns, green 51, blue 255.
  std::string record(1, '\0');
  for (int i = 0; i < 1024; ++i) record += i % 2 == 0 ? '\xFF' : '\0';
  record += std::string(1024, '\x33') + std::string(1024, '\xFF');
  for (int i = 1; i <= 5; ++i) {
    write(folder / ("data_batch_" + std::to_string(i) + ".bin"), record);
  }
  write(folder / "test_batch.bin", record);
  const Dataset data = read_dataset("cifar10:" + folder / "", {.normalise = true});
  ASSERT_EQ(data.mean.size(), 3U);
  EXPECT_NEAR(data.mean[0], 0.5, 1e-12);
  EXPECT_NEAR(data.mean[1], 0.2, 1e-12);
  EXPECT_NEAR(data.mean[2], 1.0, 1e-12);
  EXPECT_NEAR(data.deviation[0], 0.5, 1e-12);
  // Nothing to divide by; rounding must not make it tiny.
  EXPECT_EQ(data.deviation[1], 1);
  EXPECT_EQ(data.deviation[2], 1);
}

TEST(Random, IsTheSameOnEveryPlatform) {
  Random random(0);
  EXPECT_EQ(random.next(), 920862675595841680U);
  Random keyed(1, 2, 3);
  Random same(1, 2, 3);
  EXPECT_EQ(keyed.next(), same.next());
  EXPECT_NE(Random(1, 2, 3).next(), Random(1, 3, 2).next());
  EXPECT_NE(Random(1, 2, 3).next(), Random(2, 1, 3).next());
}

TEST(Random, StaysInItsRange) {
  Random random(5);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) ++seen[random.between(-3, 3) + 3];
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 850);
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), 1150);
}

}  // namespace
}  // namespace parsimony::test
