#include "parsimony/graph/slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

/// Element by element, with indices of every dimension.
std::vector<std::byte> by_hand(const std::vector<std::byte>& data, const Shape& dims,
                               int64_t element, const std::vector<AxisKeep>& axes) {
  std::vector<std::byte> out;
  const int64_t count = element_count(dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    bool stays = true;
    for (size_t d = dims.size(); d-- > 0;) {
      const int64_t index = rest % dims[d];
      rest /= dims[d];
      for (const AxisKeep& axis : axes) {
        if (axis.axis != static_cast<int>(d)) continue;
        stays = stays && std::binary_search(axis.keep.begin(), axis.keep.end(), index);
      }
    }
    if (stays) out.insert(out.end(), data.begin() + i * element, data.begin() + (i + 1) * element);
  }
  return out;
}

std::string error_of(const Shape& dims, const std::vector<AxisKeep>& axes) {
  try {
    check_slices("w", dims, axes);
  } catch (const ModelError& error) {
    return error.what();
  }
  return "";
}

TEST(Slice, EqualsElementByElementCopyInEveryForm) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 500; ++round) {
    Shape dims(static_cast<size_t>(1 + below(4)));
    for (int64_t& dim : dims) dim = 1 + below(6);
    const int64_t element = int64_t{1} << below(4);
    std::vector<std::byte> data(element_count(dims) * element);
    for (std::byte& byte : data) byte = static_cast<std::byte>(below(256));
    std::vector<AxisKeep> axes;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (below(3) == 0) continue;
      AxisKeep axis{static_cast<int>(d), dims[d], {}};
      for (int64_t i = 0; i < dims[d]; ++i) {
        if (below(3) > 0) axis.keep.push_back(i);
      }
      if (axis.keep.empty()) axis.keep.push_back(dims[d] - 1);
      axes.push_back(axis);
    }
    std::shuffle(axes.begin(), axes.end(), random);
    const std::vector<std::byte> expected = by_hand(data, dims, element, axes);
    check_slices("w", dims, axes);
    ASSERT_EQ(element_count(sliced(dims, axes)) * element, static_cast<int64_t>(expected.size()));
    std::vector<std::byte> streamed;
    for_each_run(data.data(), dims, element, axes, [&](const std::byte* run, int64_t bytes) {
      streamed.insert(streamed.end(), run, run + bytes);
    });
    ASSERT_EQ(streamed, expected) << to_string(dims);
    std::vector<std::byte> packed;
    for_each_packed(data.data(), dims, element, axes, [&](const auto& part, const auto* upto) {
      ASSERT_LE(upto, data.data() + data.size());
      packed.insert(packed.end(), part.begin(), part.end());
    });
    ASSERT_EQ(packed, expected) << "packed " << to_string(dims);
    slice(data.data(), dims, element, axes, data.data());
    data.resize(expected.size());
    ASSERT_EQ(data, expected) << "in place " << to_string(dims);
  }
}

TEST(Slice, KeepsWhatAllEntriesOfAnAxisKeep) {
  const std::vector<AxisKeep> axes = {{0, 5, {0, 1, 3}}, {0, 5, {1, 2, 3, 4}}};
  const std::vector<uint8_t> data = {10, 11, 12, 13, 14};
  std::vector<uint8_t> out(2);
  slice(reinterpret_cast<const std::byte*>(data.data()), {5}, 1, axes,
        reinterpret_cast<std::byte*>(out.data()));
  EXPECT_EQ(out, (std::vector<uint8_t>{11, 13}));
  EXPECT_EQ(sliced({5}, axes), Shape{2});
}

TEST(Slice, NeighboursAreOneRun) {
  const std::vector<std::byte> data(4 * 6 * 2);
  const std::vector<AxisKeep> axes = {{1, 6, {1, 2, 3, 5}}};
  std::vector<int64_t> runs;
  for_each_run(data.data(), {4, 6}, 2, axes,
               [&](const std::byte*, int64_t bytes) { runs.push_back(bytes); });
  EXPECT_EQ(runs, (std::vector<int64_t>{6, 2, 6, 2, 6, 2, 6, 2}));
}

/// Rows longer than a piece, pieces in the middle of rows, runs too long to be copied.
TEST(Slice, PacksLargeTensors) {
  std::vector<AxisKeep> every_other = {{1, 3'000'000, {}}};
  for (int64_t i = 0; i < 3'000'000; i += 2) every_other[0].keep.push_back(i);
  const std::vector<AxisKeep> long_runs = {{0, 6, {0, 1, 2, 4}}};
  const std::vector<AxisKeep> none;
  std::vector<std::byte> data(6 * 3'000'000 * 2);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 2654435761U >> 24);
  for (const auto& [dims, axes] : {std::pair(Shape{6, 3'000'000}, every_other),
                                   {Shape{6, 3'000'000}, long_runs},
                                   {Shape{6, 3'000'000}, none},
                                   {Shape{18'000, 1'000}, {{1, 1'000, {1, 3, 4, 998}}}}}) {
    std::vector<std::byte> expected;
    for_each_run(data.data(), dims, 2, axes, [&](const std::byte* run, int64_t bytes) {
      expected.insert(expected.end(), run, run + bytes);
    });
    std::vector<std::byte> packed;
    const std::byte* last = data.data();
    for_each_packed(data.data(), dims, 2, axes, [&](const auto& part, const std::byte* upto) {
      EXPECT_LE(static_cast<int64_t>(part.size()), kPackedBytes);
      EXPECT_LT(last, upto);
      last = upto;
      packed.insert(packed.end(), part.begin(), part.end());
    });
    EXPECT_TRUE(packed == expected) << to_string(dims);
    slice(data.data(), dims, 2, axes, packed.data());
    EXPECT_TRUE(packed == expected) << "sliced " << to_string(dims);
  }
}

TEST(Slice, EmptyTensorHasNoRuns) {
  const std::vector<AxisKeep> axes = {{1, 3, {0}}};
  check_slices("w", {0, 3}, axes);
  EXPECT_EQ(sliced({0, 3}, axes), (Shape{0, 1}));
  for_each_run(nullptr, {0, 3}, 4, axes, [](const std::byte*, int64_t) { FAIL(); });
}

TEST(Slice, SaysWhatDoesNotFit) {
  EXPECT_EQ(error_of({4, 3}, {{2, 4, {0}}}),
            "tensor \"w\": cannot slice axis 2: expected an axis of [4, 3], found axis 2");
  EXPECT_EQ(error_of({4, 3}, {{0, 5, {0}}}),
            "tensor \"w\": cannot slice axis 0: expected size 4, found size 5");
  EXPECT_EQ(error_of({4, 3}, {{0, 4, {1, 1}}}),
            "tensor \"w\": cannot slice axis 0: expected ascending indices below 4, found 1");
  EXPECT_EQ(error_of({4, 3}, {{0, 4, {1, 4}}}),
            "tensor \"w\": cannot slice axis 0: expected ascending indices below 4, found 4");
  EXPECT_EQ(error_of({4, 3}, {{1, 3, {}}}),
            "tensor \"w\": cannot slice axis 1: expected at least one kept index, found none");
  EXPECT_NE(error_of({4}, {{0, 4, {0}}, {0, 4, {1}}}), "");
}

}  // namespace
}  // namespace parsimony
