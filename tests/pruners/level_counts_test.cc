#include <gtest/gtest.h>

#include <numeric>

#include "parsimony/pruners/level.h"
#include "tests/graph/builder.h"

namespace parsimony {
namespace {

using ElementCounts = std::vector<int64_t>;

/// Two matrices of ten elements: 1 … 10 and 11 … 20.
struct TwoMatrices {
  test::Builder b;
  Settings settings;

  TwoMatrices() {
    for (const float first : {1.0F, 11.0F}) {
      std::vector<float> numbers(10);
      std::iota(numbers.begin(), numbers.end(), first);
      b.weight("w", numbers, {2, 5}, DType::kFloat32);
    }
    settings.requests.resize(2);
    for (Request& request : settings.requests) {
      request.ratio = 0.5;
      request.global_group = "a";
      request.scope = Scope::kGlobal;
    }
  }

  Request& request(size_t i) { return settings.requests[i]; }
  ElementCounts counts() const {
    return level_counts(settings,
                        {{&b.graph.weights[WeightId(0)], 0}, {&b.graph.weights[WeightId(1)], 1}});
  }
};

TEST(LevelCounts, ShareABudget) { EXPECT_EQ(TwoMatrices().counts(), (ElementCounts{10, 0})); }

TEST(LevelCounts, StayWithinTheBoundsOfEachMatrix) {
  TwoMatrices net;
  net.request(0).max_ratio = 0.8;
  EXPECT_EQ(net.counts(), (ElementCounts{8, 2}));
  net.request(0).max_ratio = 1;
  net.request(1).min_ratio = 0.25;
  EXPECT_EQ(net.counts(), (ElementCounts{7, 3}));
  net.request(0).max_ratio = 0.1;
  net.request(1).max_ratio = 0.5;
  EXPECT_EQ(net.counts(), (ElementCounts{1, 5}));
  net.request(0).max_ratio = 1;
  net.request(0).min_ratio = 0.9;
  net.request(1).min_ratio = 0.4;
  EXPECT_EQ(net.counts(), (ElementCounts{9, 4}));
}

TEST(LevelCounts, OfOneLayerAreWithinItsBoundsToo) {
  TwoMatrices net;
  for (size_t i : {0U, 1U}) {
    net.request(i).scope = Scope::kLocal;
    net.request(i).global_group.clear();
  }
  net.request(0).max_ratio = 0.3;
  net.request(1).min_ratio = 0.7;
  EXPECT_EQ(net.counts(), (ElementCounts{3, 7}));
}

TEST(LevelCounts, OfAThreshold) {
  TwoMatrices net;
  for (size_t i : {0U, 1U}) {
    net.request(i).scope = Scope::kLocal;
    net.request(i).global_group.clear();
    net.request(i).threshold = 13;
  }
  net.request(0).max_ratio = 0.6;
  EXPECT_EQ(net.counts(), (ElementCounts{6, 2}));
}

}  // namespace
}  // namespace parsimony
