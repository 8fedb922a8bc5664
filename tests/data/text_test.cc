// Text: windows of bytes and what follows each byte.
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "tests/data/data_files.h"

namespace parsimony::test {
namespace {

class TextFile : public testing::Test {
 protected:
  std::string spec(const std::string& text, const std::string& options = ",length=4") {
    write(path_, text);
    return "text:" + path_ + options;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "verse, first.txt";
};

TEST_F(TextFile, EachByteIsLabelledWithTheNext) {
  const Dataset data = read_dataset(spec("abcdefghijklmnopqrstuvwxyz"), {.test_share = 0.34});
  EXPECT_TRUE(data.tokens);
  EXPECT_EQ(data.classes.size(), 256U);
  EXPECT_EQ(data.scale, 1);
  EXPECT_EQ(data.train.dims, Shape{4});
  EXPECT_EQ(data.train.label_dims, Shape{4});
  ASSERT_EQ(data.train.count(), 4) << "the last byte but one is no window";
  ASSERT_EQ(data.test.count(), 2);
  EXPECT_EQ(static_cast<char>(data.train.values[4]), 'e');
  EXPECT_EQ(data.train.labels[4], 'f');
  EXPECT_EQ(static_cast<char>(data.test.values[0]), 'q') << "the last windows are for testing";
  EXPECT_EQ(data.test.labels.back(), 'y');
}

TEST_F(TextFile, ALengthThatIsNotGivenIsNoted) {
  const std::string text(1000, 'a');
  const Dataset data = read_dataset(spec(text, ""));
  EXPECT_EQ(data.train.dims, Shape{128});
  EXPECT_EQ(data.note,
            "text:" + path_ + " is cut into windows of 128 bytes; length=N sets another length");
  EXPECT_EQ(read_dataset(spec(text, ",length=128")).note, "");
}

TEST_F(TextFile, LimitsCountWindows) {
  const Dataset data =
      read_dataset(spec("abcdefghijklmnopqrstuvwxyz"), {.train_samples = 2, .test_samples = 1});
  EXPECT_EQ(data.train.count(), 2);
  EXPECT_EQ(data.train.labels.size(), 8U);
  EXPECT_EQ(data.train.values.size(), 8U);
  EXPECT_EQ(data.test.count(), 1);
}

TEST_F(TextFile, BytesAboveAsciiAreIndicesToo) {
  const Dataset data = read_dataset(spec("\xc3\xa4\xc3\xb6\xff....."), {.test_share = 0.5});
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{0xa4, 0xc3, 0xb6, 0xff}));
}

TEST_F(TextFile, SaysWhatIsWrong) {
  EXPECT_EQ(failure_of<ModelError>(spec("abcd")),
            path_ + ": byte 4: the file ends here; expected 5 bytes for a window and its labels");
  const std::string requested = "expected text:FILE,length=N, with N of at least 1";
  EXPECT_EQ(failure_of<ConfigError>(spec("abcdefgh", ",length=x")),
            "data \"" + spec("", ",length=x") + "\": " + requested);
  EXPECT_EQ(
      failure_of<ConfigError>(spec("abcdefgh")),
      "data \"" + spec("abcdefgh") +
          "\": a split of 1 samples leaves none to test with; pass a test set or another share");
}

}  // namespace
}  // namespace parsimony::test
