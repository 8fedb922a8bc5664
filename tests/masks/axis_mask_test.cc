#include <gtest/gtest.h>

#include "parsimony/masks/mask.h"
#include "tests/masks/small_net.h"

namespace parsimony::test {
namespace {

/// Flatten in between: a channel owns four inputs of W2.
Solved net(SmallNet& n) {
  const auto a = n.conv(n.x({1, 3, 2, 2}), "1", {3, 3, 1, 1});
  return n.solve(n.linear(n.node("Flatten", {a}, "f"), "2", {12, 4}));
}

TEST(AxisMasks, RemovedChannelsTakeAllTheirIndices) {
  SmallNet n;
  const Solved solved = net(n);
  AxisMasks masks = AxisMasks::all_kept(solved.coupling);
  masks.keep[GroupId(0)] = {1, 0, 1};
  EXPECT_EQ(masks.kept(GroupId(0)), 2);
  const DimClassId dim_class = solved.coupling.dim_class_of(n.graph.find("W2"), 0);
  EXPECT_EQ(kept_indices(solved.coupling, masks, dim_class),
            (std::vector<int64_t>{0, 1, 2, 3, 8, 9, 10, 11}));
}

TEST(AxisMasks, ShapesFollow) {
  SmallNet n;
  const Solved solved = net(n);
  AxisMasks masks = AxisMasks::all_kept(solved.coupling);
  masks.keep[GroupId(0)] = {1, 0, 0};
  const auto shapes = predict_shapes(solved.facts, solved.coupling, masks);
  const auto shape = [&](const char* name) { return *shapes[n.graph.find(name)]; };
  EXPECT_EQ(shape("W1"), (Shape{1, 3, 1, 1}));
  EXPECT_EQ(shape("f"), (Shape{1, 4}));
  EXPECT_EQ(shape("W2"), (Shape{4, 4}));
  EXPECT_EQ(shape("2"), (Shape{1, 4}));
}

TEST(AxisMasks, TheBestChannelOfAnEmptyDimensionComesBack) {
  SmallNet n;
  const Solved solved = net(n);
  AxisMasks masks{{{0, 0, 0}}};
  EXPECT_EQ(keep_enough(solved.coupling, {{0.5, 2, 1}}, masks), 1);
  EXPECT_EQ(masks.keep[GroupId(0)], (std::vector<uint8_t>{0, 1, 0}));
}

}  // namespace
}  // namespace parsimony::test
