#include "parsimony/speedup/masked_values.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

using Floats = std::vector<float>;
using Rows = std::vector<int64_t>;

/// 1, 2, 3, …
Floats counted(int64_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

Plan cut(std::vector<PlanSlice> slices) {
  Plan plan;
  plan.groups.emplace_back().slices = std::move(slices);
  return plan;
}

TensorUpdate update_of(const std::string& tensor, const Floats& values) {
  TensorUpdate update{.tensor = tensor, .reason = "fit"};
  const auto bytes = std::as_bytes(std::span(values));
  update.values.assign(bytes.begin(), bytes.end());
  return update;
}

TensorMask only_mask(const Plan& plan) {
  std::vector<TensorMask> masks = tensor_masks(plan);
  EXPECT_EQ(masks.size(), 1);
  return masks.at(0);
}

/// What becomes of these rows of a tensor; of all if there are none.
Floats masked(const Plan& plan, const Shape& dims, Floats values, const Rows& rows = {}) {
  mask_values(only_mask(plan), {.dtype = DType::kFloat32,
                                .dims = dims,
                                .values = std::as_writable_bytes(std::span(values)),
                                .rows = rows});
  return values;
}

TEST(MaskedValues, SlicesBecomeZeroExceptThoseOfDivisors) {
  EXPECT_EQ(masked(cut({{"w", 0, Role::kOut, 2, {1}}, {"w", 1, Role::kIn, 3, {0, 2}}}), {2, 3},
                   counted(6)),
            (Floats{0, 0, 0, 4, 0, 6}));
  const Plan divisor = cut({{"w", 0, Role::kWith, 2, {1}}});
  EXPECT_EQ(masked(divisor, {2, 3}, counted(6)), counted(6));
  EXPECT_FALSE(only_mask(divisor).changes_values());
}

TEST(MaskedValues, LongSlicesAndShortOnesAlike) {
  for (const int64_t inner : {1, 7, 200}) {
    const Plan plan = cut({{"w", 1, Role::kIn, 5, {1, 2}}});
    Floats requested = counted(3 * 5 * inner);
    for (size_t i = 0; i < requested.size(); ++i) {
      const size_t k = i / inner % 5;
      if (k != 1 && k != 2) requested[i] = 0;
    }
    EXPECT_EQ(masked(plan, {3, 5, inner}, counted(3 * 5 * inner)), requested) << inner;
  }
}

TEST(MaskedValues, NewValuesAreThoseOfWhatRemainsDivisorsIncluded) {
  Plan plan = cut({{"w", 0, Role::kWith, 3, {0, 2}}, {"w", 1, Role::kIn, 2, {1}}});
  plan.updates = {update_of("w", {8, 9})};
  EXPECT_EQ(masked(plan, {3, 2}, counted(6)), (Floats{0, 8, 0, 4, 0, 9}));
  plan.updates = {update_of("w", {8, 9, 10})};
  EXPECT_THROW(masked(plan, {3, 2}, counted(6)), ModelError);
}

TEST(MaskedValues, TheSmallestGoBeforeTheSlices) {
  Plan plan = cut({{"w", 0, Role::kOut, 3, {1, 2}}});
  plan.zeros = {{"w", 2}};
  EXPECT_EQ(masked(plan, {3}, {3, -1, 2}), (Floats{0, 0, 0}));
}

TEST(MaskedValues, TheMostNegativeIntegerIsNotSmall) {
  Plan plan;
  plan.zeros = {{"w", 2}};
  std::vector<int8_t> values{-128, 3, -2, 127};
  mask_values(
      only_mask(plan),
      {.dtype = DType::kInt8, .dims = {4}, .values = std::as_writable_bytes(std::span(values))});
  EXPECT_EQ(values, (std::vector<int8_t>{-128, 0, 0, 127}));
}

TEST(MaskedValues, WithExactConstantsElementsGoAndNothingElse) {
  Plan plan = cut({{"w", 0, Role::kOut, 2, {1}}});
  plan.constants = Constants::kExact;
  plan.masks = {{"w", {2, 2}, {1, 0, 0, 1}}};
  EXPECT_EQ(masked(plan, {2, 2}, counted(4)), (Floats{1, 0, 0, 4}));
  EXPECT_EQ(masked(plan, {2, 2}, {3, 4}, {1}), (Floats{0, 4}));
  EXPECT_THROW(masked(plan, {4}, counted(4)), ModelError);
}

TEST(MaskedValues, RowsAreThoseOfTheWhole) {
  const Shape dims{5, 3, 2};
  Plan plan = cut({{"w", 0, Role::kOut, 5, {1, 2, 4}}, {"w", 1, Role::kIn, 3, {0, 2}}});
  for (const bool updated : {false, true}) {
    if (updated) plan.updates = {update_of("w", Floats(12, 0.5F))};
    for (size_t i = 0; updated && i < 12; ++i) {
      const float value = 100.0F + static_cast<float>(i);
      std::memcpy(plan.updates[0].values.data() + 4 * i, &value, 4);
    }
    const Floats whole = masked(plan, dims, counted(30));
    for (const Rows& rows : {Rows{4}, Rows{0, 1}, Rows{3, 2, 1}}) {
      Floats some;
      Floats requested;
      for (const int64_t row : rows) {
        for (int64_t i = 6 * row; i < 6 * row + 6; ++i) {
          some.push_back(static_cast<float>(i + 1));
          requested.push_back(whole[i]);
        }
      }
      EXPECT_EQ(masked(plan, dims, some, rows), requested);
    }
  }
}

TEST(MaskedValues, ZeroPointsMayDifferAlongAnAxis) {
  const Plan plan = cut({{"w", 0, Role::kOut, 3, {0}}});
  const TensorMask mask = only_mask(plan);
  std::vector<uint8_t> values{1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_writable_bytes(std::span(values));
  ZeroBytes zero{{std::byte{7}, std::byte{8}}, 1};
  mask_values(mask, {.dtype = DType::kUInt8, .dims = {3, 2}, .values = bytes}, zero);
  EXPECT_EQ(values, (std::vector<uint8_t>{1, 2, 7, 8, 7, 8}));
  zero = {{std::byte{7}, std::byte{8}, std::byte{9}}, 2};
  const Rows rows{2, 1};
  mask_values(
      mask, {.dtype = DType::kUInt8, .dims = {3, 2}, .values = bytes.first(4), .rows = rows}, zero);
  EXPECT_EQ(values, (std::vector<uint8_t>{9, 9, 8, 8, 7, 8}));
}

TEST(MaskedValues, AMaskForEachTensorInOrder) {
  Plan plan = cut({{"a", 0, Role::kOut, 2, {1}}, {"b", 0, Role::kIn, 2, {1}}});
  plan.zeros = {{"b", 1}, {"c", 1}};
  plan.updates = {update_of("d", {1}), {.tensor = "e", .reason = "level"}};
  std::string names;
  for (const TensorMask& mask : tensor_masks(plan)) names += mask.tensor;
  EXPECT_EQ(names, "bcad");
}

TEST(MaskedValues, SlicesMustFit) {
  EXPECT_THROW(masked(cut({{"w", 0, Role::kOut, 3, {1}}}), {2}, counted(2)), ModelError);
  EXPECT_THROW(masked(cut({{"w", 1, Role::kOut, 2, {1}}}), {2}, counted(2)), ModelError);
}

}  // namespace
}  // namespace parsimony
