#include <gtest/gtest.h>

#include "parsimony/graph/slice.h"

namespace parsimony {
namespace {

using Indices = std::vector<int64_t>;

TEST(AxisKeep, MergedKeepsWhatAllEntriesOfAnAxisKeep) {
  const std::vector<AxisKeep> axes = {{1, 4, {0, 1, 3}}, {0, 2, {1}}, {1, 4, {1, 2, 3}}};
  const std::vector<AxisKeep> once = merged(axes);
  ASSERT_EQ(once.size(), 2U);
  EXPECT_EQ(once[0].axis, 1);
  EXPECT_EQ(once[0].keep, (Indices{1, 3}));
  EXPECT_EQ(find_axis(once, 0)->keep, (Indices{1}));
  EXPECT_EQ(find_axis(once, 2), nullptr);
}

TEST(AxisKeep, ComposedCutsCountInTheWhole) {
  std::vector<AxisKeep> cuts = {{0, 6, {0, 2, 3, 5}}};
  compose(cuts, std::vector<AxisKeep>{{0, 4, {1, 3}}, {1, 2, {0}}});
  EXPECT_EQ(find_axis(cuts, 0)->keep, (Indices{2, 5}));
  EXPECT_EQ(find_axis(cuts, 0)->size, 6);
  EXPECT_EQ(find_axis(cuts, 1)->keep, (Indices{0}));
}

}  // namespace
}  // namespace parsimony
