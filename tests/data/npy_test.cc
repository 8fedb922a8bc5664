// NumPy arrays.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include "parsimony/base/errors.h"
#include "tests/data/data_files.h"
#include "tests/support/arrays.h"

namespace parsimony::test {
namespace {

std::string npy_file(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  const size_t width = version == 1 ? 2 : 4;
  for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + data;
}

std::string array(const std::string& descr, const std::string& shape, const std::string& data,
                  char version = 1) {
  return npy_file(
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }   \n", data,
      version);
}

class Npy : public testing::Test {
 protected:
  Npy() : x_(folder_ / "x.npy"), y_(folder_ / "y.npy") {}

  Dataset read(const std::string& x, const std::string& y, const DatasetOptions& options = {}) {
    write(x_, x);
    write(y_, y);
    return read_dataset(spec_(), options);
  }

  template <typename Failure>
  std::string complaint(const std::string& x, const std::string& y) {
    write(x_, x);
    write(y_, y);
    return failure_of<Failure>(spec_());
  }

  std::string spec_() const { return "npy:" + x_ + "," + y_ + "," + x_ + "," + y_; }

  TemporaryFolder folder_;
  std::string x_;
  std::string y_;
  const std::string labels_ = array("<i8", "(2,)", bytes_of<int64_t>({1, 0}));
};

std::vector<float> floats_of(const Samples& samples) {
  std::vector<float> values(samples.values.size() / sizeof(float));
  std::memcpy(values.data(), samples.values.data(), samples.values.size());
  return values;
}

TEST_F(Npy, ReadsBytesAsTheyAre) {
  const std::string pixels = pattern(2 * 3 * 2 * 2);
  const Dataset data = read(array("|u1", "(2, 3, 2, 2)", pixels), labels_);
  EXPECT_EQ(data.train.dims, (Shape{3, 2, 2}));
  EXPECT_EQ(data.train.dtype, DType::kUInt8);
  EXPECT_DOUBLE_EQ(data.scale, 1.0 / 255);
  EXPECT_EQ(values_of(data.train, 1), pixels.substr(12));
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(data.test.labels, data.train.labels);
  EXPECT_EQ(data.classes, (std::vector<std::string>{"0", "1"}));
}

TEST_F(Npy, LabelsOfElementsMayNotCount) {
  const std::string x = array("|u1", "(2, 3, 2, 2)", pattern(2 * 3 * 2 * 2));
  const std::string y = array("|u1", "(2, 2, 2)", bytes_of<uint8_t>({0, 1, 255, 2, 1, 1, 0, 255}));
  const Dataset data = read(x, y, {.ignore = 255});
  EXPECT_EQ(data.train.label_dims, (Shape{2, 2}));
  EXPECT_EQ(data.train.labels, (std::vector<int64_t>{0, 1, kNoLabel, 2, 1, 1, 0, kNoLabel}));
  EXPECT_EQ(data.classes.size(), 3U);
  const std::string own = array("<i8", "(2,)", bytes_of<int64_t>({-100, 3}));
  EXPECT_EQ(read(x, own).train.labels, (std::vector<int64_t>{kNoLabel, 3}));
}

TEST_F(Npy, ReadsEveryTypeAndVersion) {
  const std::vector<float> expected = {1, -2, 3, 4};
  const auto check = [&](const std::string& descr, const std::string& bytes) {
    for (const char version : {'\1', '\2', '\3'}) {
      const Dataset data = read(array(descr, "(2, 2)", bytes, version), labels_);
      EXPECT_EQ(data.train.dims, (Shape{2})) << descr;
      EXPECT_EQ(data.train.dtype, DType::kFloat32);
      EXPECT_EQ(data.scale, 1);
      EXPECT_EQ(floats_of(data.train), expected) << descr;
    }
  };
  check("<f4", bytes_of<float>({1, -2, 3, 4}));
  check("<f8", bytes_of<double>({1, -2, 3, 4}));
  check("<i4", bytes_of<int32_t>({1, -2, 3, 4}));
  check("<i8", bytes_of<int64_t>({1, -2, 3, 4}));
}

TEST_F(Npy, ReadsLabelsOfEveryType) {
  const std::string x = array("|u1", "(2, 1)", "ab");
  const std::vector<int64_t> expected = {3, 200};
  EXPECT_EQ(read(x, array("|u1", "(2,)", "\x03\xC8")).train.labels, expected);
  EXPECT_EQ(read(x, array("<i4", "(2, 1)", bytes_of<int32_t>({3, 200}))).train.labels, expected);
  const Dataset data = read(x, array("<i8", "(2,)", bytes_of<int64_t>({3, 200})));
  EXPECT_EQ(data.train.labels, expected);
  EXPECT_EQ(data.classes.size(), 201U);
}

TEST_F(Npy, GreyImagesHaveOneChannel) {
  EXPECT_EQ(read(array("|u1", "(2, 3, 4)", pattern(24)), labels_).train.dims, (Shape{1, 3, 4}));
  EXPECT_EQ(read(array("|u1", "(2,)", "ab"), labels_).train.dims, (Shape{1}));
}

TEST_F(Npy, SplitsBySeedWhereThereIsNoTestPart) {
  std::vector<int32_t> numbers;
  for (int32_t i = 0; i < 50; ++i) numbers.push_back(i);
  write(x_, array("<i4", "(50, 1)", bytes_of(numbers)));
  write(y_, array("<i4", "(50,)", bytes_of(numbers)));
  const std::string spec = "npy:" + x_ + "," + y_;
  const Dataset data = read_dataset(spec, {.seed = 1});
  EXPECT_EQ(data.train.count(), 40);
  EXPECT_EQ(data.test.count(), 10);
  std::set<int64_t> all(data.train.labels.begin(), data.train.labels.end());
  all.insert(data.test.labels.begin(), data.test.labels.end());
  EXPECT_EQ(all.size(), 50U);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(floats_of(data.train)[i], static_cast<float>(data.train.labels[i]));
  }
  EXPECT_EQ(read_dataset(spec, {.seed = 1}).fingerprint, data.fingerprint);
  EXPECT_NE(read_dataset(spec, {.seed = 2}).fingerprint, data.fingerprint);
  EXPECT_EQ(read_dataset(spec, {.test_share = 0.5}).test.count(), 25);
  EXPECT_EQ(failure_of<ConfigError>(spec, {.test_share = 0.001}),
            "data \"" + spec + "\": a split of 50 samples leaves none to test with; pass a test " +
                "set or another share");
}

TEST_F(Npy, RefusesOtherTypesAndOrders) {
  EXPECT_EQ(complaint<UnsupportedError>(
                npy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }\n",
                         bytes_of<float>({1, 2, 3, 4})),
                labels_),
            x_ + ": the array is in Fortran order; save numpy.ascontiguousarray(array)");
  EXPECT_EQ(complaint<UnsupportedError>(array(">f4", "(2,)", "12345678"), labels_),
            x_ + ": elements of type \">f4\", expected little-endian numbers");
  EXPECT_EQ(complaint<UnsupportedError>(array("<f2", "(2,)", "1234"), labels_),
            x_ + ": elements of type \"f2\", expected one of u1 f4 f8 i4 i8");
  EXPECT_EQ(complaint<UnsupportedError>(array("|u1", "(2,)", "ab"),
                                        array("<f4", "(2,)", bytes_of<float>({0, 1}))),
            y_ + ": elements of type \"f4\", expected one of u1 i4 i8");
}

TEST_F(Npy, NamesFileAndByteOfWhatIsWrong) {
  const std::string good = array("<f4", "(2, 1)", bytes_of<float>({1, 2}));
  const auto size = [](const std::string& bytes) { return std::to_string(bytes.size()); };
  EXPECT_EQ(complaint<ModelError>(good.substr(0, good.size() - 3), labels_),
            x_ + ": byte " + std::to_string(good.size() - 3) + ": the file ends here; expected " +
                size(good) + " bytes for an array of [2, 1]");
  EXPECT_EQ(complaint<ModelError>(good + "x", labels_),
            x_ + ": byte " + size(good) + ": the data end here, but the file has " +
                std::to_string(good.size() + 1) + " bytes");
  EXPECT_EQ(complaint<ModelError>("PK" + good, labels_),
            x_ + ": byte 0: not a NumPy array: expected \"\\x93NUMPY\"");
  EXPECT_EQ(complaint<ModelError>(good.substr(0, 30), labels_),
            x_ + ": byte 30: the file ends here; expected " + std::to_string(good.size() - 8) +
                " bytes for the header");
  EXPECT_EQ(complaint<ModelError>(array("<f4", "(2, 1)", "", '\4'), labels_),
            x_ + ": byte 6: not a NumPy array: version 4 of 1 to 3");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(complaint<ModelError>(array("<f4", "(2, 1)", bytes_of<float>({1, nan})), labels_),
            x_ + ": byte " + std::to_string(good.size() - 4) + ": a value that is not finite");
  EXPECT_EQ(complaint<ModelError>(good, array("<i8", "(2,)", bytes_of<int64_t>({0, -1}))),
            y_ + ": byte " + std::to_string(labels_.size() - 8) + ": label -1 is not in 0..65535");
  EXPECT_EQ(complaint<ModelError>(good, array("<i4", "(3,)", bytes_of<int32_t>({0, 1, 2}))),
            x_ + ": 2 samples, but 3 labels in " + y_);
  EXPECT_EQ(complaint<ModelError>(array("<f4", "(0, 3)", ""), labels_),
            x_ + ": contains no samples");
}

TEST_F(Npy, ChecksTheHeader) {
  const auto why = [&](const std::string& header) {
    const std::string text = complaint<ModelError>(npy_file(header, "ab"), labels_);
    return text.substr(std::min(text.size(), x_.size() + 2));
  };
  EXPECT_EQ(why("{'descr': '|u1', 'shape': (2,)}"),
            "byte 41: not a NumPy array: descr, fortran_order or shape is missing");
  EXPECT_EQ(why("['descr']"), "byte 10: not a NumPy array: expected \"{\"");
  EXPECT_EQ(why("{'descr': '|u1"), "byte 21: not a NumPy array: a text does not end");
  EXPECT_EQ(why("{'other': 1}"), "byte 19: not a NumPy array: unknown key \"other\"");
  EXPECT_EQ(why("{'fortran_order': 0}"), "byte 28: not a NumPy array: expected True or False");
  EXPECT_EQ(why("{'shape': (2, -1)}"), "byte 24: not a NumPy array: expected a dimension");
  EXPECT_EQ(why("{'shape': (2 1)}"), "byte 23: not a NumPy array: expected a comma");
  EXPECT_EQ(why("{'shape': (99999999999999999999,)}"),
            "byte 21: not a NumPy array: expected a dimension");
  const std::string large =
      why("{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296), }");
  EXPECT_TRUE(large.starts_with("byte 87: not a NumPy array: ")) << large;
}

TEST_F(Npy, ArraysByNameAreADataSetToo) {
  const std::string x = array("|u1", "(10, 3)", pattern(30));
  const std::string y = array("|u1", "(10,)", std::string(5, '\0') + std::string(5, '\1'));
  write(x_, x);
  write(y_, y);
  const std::string expected = read_dataset("npy:" + x_ + "," + y_, {.seed = 3}).fingerprint;
  const std::string path = folder_ / "both.npz";
  write_npz(path, {{"labels", y}, {"pixels", x}});
  EXPECT_EQ(read_dataset("npz:" + path, {.seed = 3}).fingerprint, expected);
  EXPECT_EQ(read_dataset(path, {.seed = 3}).name, "npz");
  const std::string named = "npy:pixels=" + x_ + ",labels=" + y_;
  EXPECT_EQ(read_dataset(named, {.seed = 3}).fingerprint, expected);
  const std::string folder = folder_ / "seed=1";
  std::filesystem::create_directory(folder);
  write(folder + "/x.npy", x);
  write(folder + "/y.npy", y);
  const std::string paths = "npy:" + folder + "/x.npy," + folder + "/y.npy";
  EXPECT_EQ(read_dataset(paths, {.seed = 3}).fingerprint, expected) << "what is a file has no name";
  write_npz(path, {{"pixels", x}});
  EXPECT_EQ(failure_of<ConfigError>("npz:" + path),
            "data \"npz:" + path +
                "\": expected an array of samples and one of labels, \"labels\"; found \"pixels\"");
}

TEST_F(Npy, TestPartMustBeLikeTheOther) {
  write(x_, array("|u1", "(2, 3)", "abcdef"));
  write(y_, labels_);
  write(folder_ / "xt.npy", array("|u1", "(2, 2)", "abcd"));
  const std::string spec = "npy:" + x_ + "," + y_ + "," + folder_ / "xt.npy" + "," + y_;
  EXPECT_EQ(
      failure_of<ModelError>(spec),
      "data \"" + spec + "\": samples to test with are [2] uint8, those to train with [3] uint8");
  write(folder_ / "xt.npy", array("<f4", "(2, 3)", std::string(24, '\0')));
  EXPECT_EQ(
      failure_of<ModelError>(spec),
      "data \"" + spec + "\": samples to test with are [3] float32, those to train with [3] uint8");
}

}  // namespace
}  // namespace parsimony::test
