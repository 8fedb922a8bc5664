// The layout of MNIST.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "tests/data/data_files.h"

namespace parsimony::test {
namespace {

std::string number(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

std::string images(uint32_t count, uint32_t height, uint32_t width, uint64_t seed = 0) {
  return number(0x803) + number(count) + number(height) + number(width) +
         pattern(count * height * width, seed);
}

std::string labels(const std::string& values) {
  return number(0x801) + number(static_cast<uint32_t>(values.size())) + values;
}

/// Three images of [1, 4, 5] to train with, two to test with.
void write_mnist(const std::string& folder, const std::string& prefix = "",
                 const std::string& test = "t10k", bool zip = false) {
  const auto put = [&](const std::string& name, const std::string& bytes) {
    write(folder + prefix + name + (zip ? ".gz" : ""), zip ? gzipped(bytes) : bytes);
  };
  put("train-images-idx3-ubyte", images(3, 4, 5, 1));
  put("train-labels-idx1-ubyte", labels("\x01\x09\x03"));
  put(test + "-images-idx3-ubyte", images(2, 4, 5, 2));
  put(test + "-labels-idx1-ubyte", labels("\x02\x04"));
}

TEST(Idx, ReadsPlainFiles) {
  TemporaryFolder folder;
  write_mnist(folder / "");
  const Dataset data = read_dataset("mnist:" + folder / "");
  EXPECT_EQ(data.train.dims, (Shape{1, 4, 5}));
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{1, 9, 3}));
  EXPECT_EQ(data.test.labels, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(values_of(data.train, 1), pattern(60, 1).substr(20, 20));
  EXPECT_EQ(values_of(data.test, 0), pattern(40, 2).substr(0, 20));
  EXPECT_EQ(data.classes.size(), 10U);
}

TEST(Idx, ReadsCompressedFilesAndOtherNames) {
  TemporaryFolder plain;
  TemporaryFolder zipped;
  TemporaryFolder dotted;
  write_mnist(plain / "");
  write_mnist(zipped / "", "", "t10k", true);
  write_mnist(dotted / "");
  for (const char* part : {"train", "t10k"}) {
    for (const char* kind : {"images-idx3", "labels-idx1"}) {
      std::string name = std::string(part) + "-" + kind + "-ubyte";
      const std::string from = dotted / name;
      name[name.find("-idx")] = '.';
      std::filesystem::rename(from, dotted / name);
    }
  }
  const std::string expected = read_dataset("mnist:" + plain / "").fingerprint;
  EXPECT_EQ(read_dataset("mnist:" + zipped / "").fingerprint, expected);
  EXPECT_EQ(read_dataset("mnist:" + dotted / "").fingerprint, expected);
  // Of a file and its compressed twin the plain one is read.
  write(plain / "train-images-idx3-ubyte.gz", "not read");
  EXPECT_EQ(read_dataset("mnist:" + plain / "").fingerprint, expected);
}

TEST(Idx, TurnsEmnistUpright) {
  TemporaryFolder folder;
  write_mnist(folder / "", "emnist-balanced-", "test", true);
  const Dataset data = read_dataset("mnist:" + folder / "");
  EXPECT_EQ(data.train.dims, (Shape{1, 5, 4}));
  EXPECT_EQ(data.classes.size(), 47U);
  const std::string stored = pattern(60, 1).substr(20, 20);
  const std::string upright = values_of(data.train, 1);
  for (size_t y = 0; y < 5; ++y) {
    for (size_t x = 0; x < 4; ++x) EXPECT_EQ(upright[y * 4 + x], stored[x * 5 + y]);
  }
}

TEST(Idx, ChoosesAmongSeveralByTheBeginningOfTheirNames) {
  TemporaryFolder folder;
  write_mnist(folder / "", "emnist-balanced-", "test");
  write_mnist(folder / "", "emnist-letters-", "test");
  const std::string why = failure_of<ConfigError>("mnist:" + folder / "");
  EXPECT_NE(why.find("emnist-balanced-train-images-idx3-ubyte, emnist-letters-train-images-idx3"),
            std::string::npos);
  const Dataset data = read_dataset("mnist:" + folder / "emnist-letters");
  EXPECT_EQ(data.classes.size(), 26U);
  EXPECT_EQ(data.classes[0], "1");
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{0, 8, 2}));  // letters count from 1
}

TEST(Idx, SaysWhatIsMissing) {
  TemporaryFolder folder;
  write_mnist(folder / "");
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
  EXPECT_EQ(failure_of<IoError>("mnist:" + folder / "."),
            folder / "." + ": found no t10k-labels-idx1-ubyte[.gz]");
  EXPECT_EQ(failure_of<IoError>("mnist:" + folder / "none/here"),
            "cannot list \"" + folder / "none/here" + "\": No such file or directory");
}

class IdxDamage : public testing::Test {
 protected:
  void SetUp() override { write_mnist(folder_ / ""); }

  /// What is said once the file has this content; file and folder are left out.
  std::string complaint(const std::string& name, const std::string& bytes) {
    write(folder_ / name, bytes);
    const std::string why = failure_of<ModelError>("mnist:" + folder_ / ".");
    const std::string place = folder_ / "./";
    EXPECT_TRUE(why.starts_with(place)) << why;
    return why.substr(std::min(place.size(), why.size()));
  }

  TemporaryFolder folder_;
};

TEST_F(IdxDamage, NamesFileAndByte) {
  const std::string name = "train-images-idx3-ubyte";
  const std::string good = images(3, 4, 5, 1);
  EXPECT_EQ(complaint(name, good.substr(0, 50)),
            name + ": byte 50: the file ends here; expected 76 bytes for its images");
  EXPECT_EQ(complaint(name, good.substr(0, 9)),
            name + ": byte 9: the file ends here; expected 16 bytes for the sizes");
  EXPECT_EQ(complaint(name, good + "x"),
            name + ": byte 76: the data end here, but the file has 77 bytes");
  EXPECT_EQ(complaint(name, number(0x802) + good.substr(4)),
            name + ": byte 0: found 2050, expected 2051");
  EXPECT_EQ(complaint(name, images(0, 4, 5)), name + ": contains no samples");
  EXPECT_EQ(complaint(name, good.substr(0, 8) + number(1 << 20) + good.substr(12)),
            name + ": byte 8: found size 1048576, expected at most 16384");
  // Sizes whose product does not fit into 64 bits must not pass for a small one.
  EXPECT_EQ(
      complaint(name, number(0x803) + number(0xFFFFFFFF) + number(16384) + number(16384)),
      name + ": byte 16: the file ends here; expected 1152921504338411536 bytes for its images");
}

TEST_F(IdxDamage, HoldsLabelsToImages) {
  const std::string name = "train-labels-idx1-ubyte";
  EXPECT_EQ(complaint(name, labels("\x01\x0A\x03")), name + ": byte 9: label 10 is not in 0..9");
  EXPECT_EQ(complaint(name, labels("\x01\x02")).substr(0, 46),
            "train-images-idx3-ubyte: 3 samples, but 2 labe");
}

TEST_F(IdxDamage, OfCompressedData) {
  const std::string name = "train-images-idx3-ubyte.gz";
  std::filesystem::remove(folder_ / "train-images-idx3-ubyte");
  const std::string good = gzipped(images(3, 4, 5, 1));
  EXPECT_EQ(complaint(name, good.substr(0, 40)),
            name + ": byte 40: damaged gzip data: unexpected end of file");
  EXPECT_EQ(complaint(name, ""), name + ": byte 0: damaged gzip data: the file is empty");
  EXPECT_EQ(complaint(name, "plain text"),
            name + ": byte 2: damaged gzip data: incorrect header check");
  EXPECT_NE(complaint(name, gzipped(std::string(20'000'000, '\0')))
                .find("it decompresses to more than 2 MB and 64 times its size"),
            std::string::npos);
  std::string changed = good;
  changed[good.size() - 6] = static_cast<char>(~changed[good.size() - 6]);  // of the checksum
  EXPECT_EQ(complaint(name, changed), name + ": byte " + std::to_string(good.size() - 4) +
                                          ": damaged gzip data: incorrect data check");
  EXPECT_EQ(complaint(name, good + "tail"), name + ": byte " + std::to_string(good.size() + 2) +
                                                ": damaged gzip data: incorrect header check");
}

TEST(Idx, ReadsRealMnist) {
  const char* shared = std::getenv("PARSIMONY_TEST_DATA");
  const std::string place = std::string(shared != nullptr ? shared : "") + "/data/mnist";
  if (shared == nullptr || !std::filesystem::exists(place)) GTEST_SKIP() << "no real data";
  const Dataset data = read_dataset("mnist:" + place, {.normalise = true});
  EXPECT_EQ(data.train.count(), 60'000);
  EXPECT_EQ(data.test.count(), 10'000);
  EXPECT_EQ(data.train.dims, (Shape{1, 28, 28}));
  EXPECT_EQ(std::count(data.train.labels.begin(), data.train.labels.end(), 0), 5923);
  EXPECT_EQ(std::count(data.test.labels.begin(), data.test.labels.end(), 0), 980);
  // The numbers that everybody normalises MNIST with.
  EXPECT_NEAR(data.mean.at(0), 0.1307, 5e-5);
  EXPECT_NEAR(data.deviation.at(0), 0.3081, 5e-5);
}

}  // namespace
}  // namespace parsimony::test
