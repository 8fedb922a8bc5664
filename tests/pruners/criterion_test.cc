#include "parsimony/pruners/criterion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "parsimony/base/errors.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using test::Builder;
using test::group_of;
using test::member;

struct OneLayer {
  Builder b;
  Group group;

  OneLayer() {
    const ValueId w = b.weight<float>("w", {3, -4, 0, 6}, {2, 2}, DType::kFloat32);
    b.node("Gemm", {b.input("x", {1, 2}), w}, "y");
    group = group_of({member(w, 0, 0, 2)}, 2);
  }

  Scores score(std::string_view criterion, uint64_t seed = 0) const {
    return find_criterion(criterion).score(b.graph, group, {seed});
  }
};

TEST(Criterion, L1IsTheSumOfMagnitudes) { EXPECT_EQ(OneLayer().score("l1"), (Scores{7, 6})); }

TEST(Criterion, L2IsTheEuclideanNorm) { EXPECT_EQ(OneLayer().score("l2"), (Scores{5, 6})); }

TEST(Criterion, RandomDependsOnSeedAndGroupAlone) {
  OneLayer layer;
  layer.group.size = 100;
  const Scores first = layer.score("random", 1);
  EXPECT_EQ(first, layer.score("random", 1));
  EXPECT_NE(first, layer.score("random", 2));
  EXPECT_TRUE(std::all_of(first.begin(), first.end(), [](double x) { return x >= 0 && x < 1; }));
  layer.group.id = "g1";
  EXPECT_NE(first, layer.score("random", 1));
}

TEST(Criterion, TableIsSortedAndFoundByName) {
  const std::vector<std::string> names = criterion_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) EXPECT_EQ(find_criterion(name).name, name);
  EXPECT_EQ(find_criterion("level").score, nullptr);
}

TEST(Criterion, NamesThoseThereAre) {
  try {
    find_criterion("l3");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(),
              "unknown criterion \"l3\"; this version has " + each_of(criterion_names()));
  }
}

}  // namespace
}  // namespace parsimony
