// The binary layout of CIFAR.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "tests/data/data_files.h"

namespace parsimony::test {
namespace {

constexpr size_t kPixels = 3072;

std::string batch_file(const std::string& folder, int i) {
  return folder + "data_batch_" + std::to_string(i) + ".bin";
}

/// Batch i has i images, of labels i, i + 1, …; the test batch has two of label 9.
void write_cifar10(const std::string& folder) {
  for (int i = 1; i <= 5; ++i) {
    std::string records;
    for (int j = 0; j < i; ++j) {
      records += static_cast<char>(i + j);
      records += pattern(kPixels, static_cast<uint64_t>(10 * i + j));
    }
    write(batch_file(folder, i), records);
  }
  write(folder + "test_batch.bin", '\x09' + pattern(kPixels, 1) + '\x09' + pattern(kPixels, 2));
}

TEST(Cifar10, ReadsAllBatchesInOrder) {
  TemporaryFolder folder;
  write_cifar10(folder / "");
  const Dataset data = read_dataset("cifar10:" + folder / "");
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{1, 2, 3, 3, 4, 5, 4, 5, 6, 7, 5, 6, 7, 8, 9}));
  EXPECT_EQ(data.test.labels, (std::vector<int64_t>{9, 9}));
  EXPECT_EQ(data.train.dims, (Shape{3, 32, 32}));
  EXPECT_EQ(values_of(data.train, 4), pattern(kPixels, 31));
  EXPECT_EQ(values_of(data.test, 1), pattern(kPixels, 2));
  EXPECT_EQ(data.classes[6], "frog");
}

TEST(Cifar10, TakesTheArchivesFolderCompressedFilesAndNames) {
  TemporaryFolder folder;
  write_cifar10(folder / "cifar-10-batches-bin/");
  const std::string inner = folder / "cifar-10-batches-bin/";
  const std::string second = read_file(batch_file(inner, 2));
  std::filesystem::remove(batch_file(inner, 2));
  // Two members, one after the other, are one file.
  write(batch_file(inner, 2) + ".gz",
        gzipped(second.substr(0, 1000)) + gzipped(second.substr(1000)));
  write(inner + "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const Dataset data = read_dataset("cifar10:" + folder / "");
  EXPECT_EQ(data.train.count(), 15);
  EXPECT_EQ(values_of(data.train, 2), pattern(kPixels, 21));
  EXPECT_EQ(data.classes[9], "j");
}

TEST(Cifar10, NamesFileAndByteOfWhatIsWrong) {
  TemporaryFolder folder;
  const std::string place = folder / "";
  write_cifar10(place);
  const std::string third = batch_file(place, 3);
  const std::string good = read_file(third);

  write(third, good.substr(0, good.size() - 1));
  EXPECT_EQ(failure_of<ModelError>("cifar10:" + place),
            third + ": byte 6146: the record that begins here has 3072 bytes, expected 3073");
  std::string bad = good;
  bad[3073] = 10;
  write(third, bad);
  EXPECT_EQ(failure_of<ModelError>("cifar10:" + place),
            third + ": byte 3073: label 10 is not in 0..9");
  write(third, "");
  EXPECT_EQ(failure_of<ModelError>("cifar10:" + place), third + ": contains no samples");
  std::filesystem::remove(third);
  EXPECT_NE(failure_of<IoError>("cifar10:" + place).find("data_batch_3.bin"), std::string::npos);
}

TEST(Cifar100, ReadsFineLabels) {
  TemporaryFolder folder;
  write(folder / "train.bin", "\x13\x63" + pattern(kPixels, 1) + "\x01\x05" + pattern(kPixels, 2));
  write(folder / "test.bin", "\x02\x07" + pattern(kPixels, 3));
  const Dataset data = read_dataset("cifar100:" + folder / "");
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{99, 5}));
  EXPECT_EQ(data.test.labels, (std::vector<int64_t>{7}));
  EXPECT_EQ(data.classes.size(), 100U);
  EXPECT_EQ(values_of(data.train, 1), pattern(kPixels, 2));

  write(folder / "test.bin", "\x02\x64" + pattern(kPixels, 3));
  EXPECT_EQ(failure_of<ModelError>("cifar100:" + folder / ""),
            folder / "test.bin" + ": byte 1: label 100 is not in 0..99");
}

TEST(Cifar10, ReadsRealImages) {
  const char* shared = std::getenv("PARSIMONY_TEST_DATA");
  const std::string source =
      std::string(shared != nullptr ? shared : "") + "/data/cifar10-train-first4000.bin.gz";
  if (shared == nullptr || !std::filesystem::exists(source)) GTEST_SKIP() << "no real data";
  TemporaryFolder folder;
  write_cifar10(folder / "");
  std::filesystem::remove(batch_file(folder / "", 1));
  std::filesystem::copy_file(source, batch_file(folder / "", 1) + ".gz");
  const Dataset data = read_dataset("cifar10:" + folder / "", {.train_samples = 4000});
  EXPECT_EQ(data.train.count(), 4000);
  const std::vector<int64_t> first(data.train.labels.begin(), data.train.labels.begin() + 10);
  EXPECT_EQ(first, (std::vector<int64_t>{6, 9, 9, 4, 1, 1, 2, 7, 8, 3}));
}

}  // namespace
}  // namespace parsimony::test
