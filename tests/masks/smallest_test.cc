#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/masks/magnitude.h"
#include "tests/graph/builder.h"

namespace parsimony {

// Equality is a test's alone.
static bool operator==(const MagnitudeThreshold& a, const MagnitudeThreshold& b) {
  return a.magnitude == b.magnitude && a.equal == b.equal;
}

namespace {

using test::Builder;

// By sorting.
MagnitudeThreshold reference(std::vector<double> magnitudes, int64_t count) {
  std::sort(magnitudes.begin(), magnitudes.end());
  const double at = magnitudes[count - 1];
  const auto first = std::lower_bound(magnitudes.begin(), magnitudes.end(), at);
  return {at, count - (first - magnitudes.begin())};
}

struct Tensors {
  Builder b;
  std::vector<const Weight*> weights;
  std::vector<double> magnitudes;

  template <typename T>
  void add(const std::string& name, const std::vector<T>& values, DType type) {
    ids_.push_back(b.weight<T>(name, values, {static_cast<int64_t>(values.size())}, type));
    for (const T x : values) magnitudes.push_back(std::fabs(static_cast<double>(x)));
    weights.clear();
    for (const ValueId id : ids_) weights.push_back(&b.graph.weight_of(id));
  }

  void expect_as_sorted() const {
    const auto total = static_cast<int64_t>(magnitudes.size());
    for (const int64_t count : {int64_t{1}, total / 10 + 1, total / 2, total - 1, total}) {
      const MagnitudeThreshold requested = reference(magnitudes, count);
      const auto sampled = threshold_by_sample(weights, count);
      ASSERT_TRUE(sampled) << count;
      EXPECT_EQ(*sampled, requested) << count;
      EXPECT_EQ(threshold_by_histogram(weights, count), requested) << count;
    }
  }

 private:
  std::vector<ValueId> ids_;
};

std::vector<float> normal(size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> draw;
  std::vector<float> values(count);
  for (float& x : values) x = draw(random);
  return values;
}

TEST(FindCut, IsAsSorted) {
  for (const size_t count : {3U, 1000U, 200'000U}) {
    Tensors t;
    t.add("w", normal(count), DType::kFloat32);
    t.expect_as_sorted();
  }
}

TEST(FindCut, IsAsSortedWhereMostAreEqual) {
  std::vector<float> values = normal(200'000);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 10 < 6) values[i] = 0;
    if (i % 10 == 7) values[i] = std::numeric_limits<float>::infinity();
  }
  Tensors t;
  t.add("w", values, DType::kFloat32);
  t.expect_as_sorted();
}

TEST(FindCut, IsAsSortedOverSeveralTypes) {
  const std::vector<float> values = normal(100'000);
  std::vector<double> doubles(values.begin(), values.end());
  for (double& x : doubles) x = x * 1.3 + 1e-12;  // none is a float
  std::vector<int8_t> bytes;
  for (size_t i = 0; i < 77'777; ++i) bytes.push_back(static_cast<int8_t>(i % 256));
  Tensors t;
  t.add("f", values, DType::kFloat32);
  t.add("d", doubles, DType::kFloat64);
  t.add("b", bytes, DType::kInt8);
  t.add("none", std::vector<float>{}, DType::kFloat32);
  t.expect_as_sorted();
}

TEST(FindCut, TakesTheDigitsWhereASampleMisleads) {
  // One element of six is drawn, by the same random numbers as here. Those are large, the others
  // not.
  std::vector<float> values(6 << 15);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 / static_cast<float>(i + 1);
  std::minstd_rand random;
  for (size_t part = 0; part < values.size(); part += 6) values[part + random() % 6] = 2;
  Tensors t;
  t.add("w", values, DType::kFloat32);
  const auto half = static_cast<int64_t>(values.size() / 2);
  EXPECT_FALSE(threshold_by_sample(t.weights, half));
  EXPECT_EQ(find_threshold(t.weights, half), reference(t.magnitudes, half));
}

TEST(FindCut, FindsANaNAnywhere) {
  for (const size_t place : {0U, 77'777U, 199'999U}) {
    std::vector<float> values = normal(200'000);
    values[place] = std::numeric_limits<float>::quiet_NaN();
    Tensors t;
    t.add("w", values, DType::kFloat32);
    EXPECT_THROW(find_threshold(t.weights, 100), ModelError) << place;
    EXPECT_THROW(threshold_by_histogram(t.weights, 100), ModelError) << place;
  }
}

TEST(CountSmallest, RanksSeveralWeightsTogether) {
  Builder b;
  const ValueId v = b.weight<float>("v", {1, 5, 2, 9}, {4}, DType::kFloat32);
  const ValueId w = b.weight<double>("w", {2, 0.1, -2}, {3}, DType::kFloat64);
  const Weight* const weights[] = {&b.graph.weight_of(v), &b.graph.weight_of(w)};
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(count_smallest(weights, 0), (Counts{0, 0}));
  EXPECT_EQ(count_smallest(weights, 1), (Counts{0, 1}));
  EXPECT_EQ(count_smallest(weights, 3), (Counts{2, 1}));
  EXPECT_EQ(count_smallest(weights, 4), (Counts{2, 2}));
  EXPECT_EQ(count_smallest(weights, 7), (Counts{4, 3}));
}

}  // namespace
}  // namespace parsimony
