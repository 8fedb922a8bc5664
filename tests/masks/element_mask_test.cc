#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/masks/mask.h"
#include "tests/graph/builder.h"

namespace parsimony {
namespace {

using test::Builder;
using Keep = std::vector<uint8_t>;

TEST(MaskSmallest, TakesMagnitudesAndBreaksTiesByIndex) {
  Builder b;
  const ValueId w = b.weight<float>("w", {3, -1, 0.5F, 1, -2, 1}, {2, 3}, DType::kFloat32);
  EXPECT_EQ(mask_smallest(b.graph.weight_of(w), 0).keep, (Keep{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(w), 1).keep, (Keep{1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(w), 2).keep, (Keep{1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(w), 3).keep, (Keep{1, 0, 0, 0, 1, 1}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(w), 6).keep, (Keep{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(w), 1).dims, (Shape{2, 3}));
}

TEST(MaskSmallest, ReadsEveryTypeAndStride) {
  Builder b;
  // -1, 2, 0.5, a subnormal, infinity
  const ValueId half =
      b.weight<uint16_t>("h", {0xbc00, 0x4000, 0x3800, 0x0001, 0x7c00}, {5}, DType::kFloat16);
  const ValueId brain = b.weight<uint16_t>("b", {0xbf80, 0x4000, 0x3f00}, {3}, DType::kBFloat16);
  const ValueId tiny = b.weight<double>("d", {1e-300, -1e-301, 1}, {3}, DType::kFloat64);
  const ValueId bytes = b.weight<int8_t>("i", {-128, 127, 0}, {3}, DType::kInt8);
  const ValueId wide = b.weight<int32_t>("s", {0x3c00, 0x3800}, {2}, DType::kFloat16);
  EXPECT_EQ(mask_smallest(b.graph.weight_of(half), 2).keep, (Keep{1, 1, 0, 0, 1}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(half), 4).keep, (Keep{0, 0, 0, 0, 1}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(brain), 1).keep, (Keep{1, 1, 0}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(tiny), 1).keep, (Keep{1, 0, 1}));
  EXPECT_EQ(mask_smallest(b.graph.weight_of(bytes), 2).keep, (Keep{1, 0, 0}));
  EXPECT_EQ(b.graph.weight_of(wide).stride, 4);
  EXPECT_EQ(mask_smallest(b.graph.weight_of(wide), 1).keep, (Keep{1, 0}));
}

TEST(MaskSmallest, RefusesWhatHasNoOrder) {
  Builder b;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ValueId w = b.weight<float>("w", {1, nan}, {2}, DType::kFloat32);
  const ValueId i = b.weight<int64_t>("shape", {1, 2}, {2}, DType::kInt64);
  EXPECT_THROW(mask_smallest(b.graph.weight_of(w), 1), ModelError);
  EXPECT_THROW(mask_smallest(b.graph.weight_of(i), 1), UnsupportedError);
}

/// Two convolutions and a vector that both add: v is shared, its two values are separate.
struct Network {
  Builder b;
  ValueId w1 = b.floats("w1", {2, 1, 2, 1});
  ValueId w2 = b.floats("w2", {1, 2});
  ValueId v = b.floats("v", {2});
  ValueId copy = kNone;
  Coupling coupling;
  AxisMasks masks;

  Network() {
    b.node("Conv", {b.input("x", {1, 1, 2, 1}), w1}, "y");
    b.node("MatMul", {w2, b.graph.find("y")}, "z");
    b.node("Add", {b.graph.find("y"), v}, "a");
    finish(b.graph);
    Group group;
    group.id = "g0";
    group.size = 2;
    group.members = {member(w1, 0, Role::kOut), member(w2, 1, Role::kIn)};
    coupling.groups.push_back(group);
    masks.keep = {{1, 0}};
  }

  static Member member(ValueId value, int axis, Role role) {
    return {value, NodeId(0), axis, role, 2, {0, 1}, {0, 1, 2}};
  }
};

TEST(ToElementMasks, ClearsEverySliceOfARemovedChannel) {
  Network n;
  const std::vector<ElementMask> masks = to_element_masks(n.b.graph, n.coupling, n.masks);
  ASSERT_EQ(masks.size(), 2U);
  EXPECT_EQ(masks[0], (ElementMask{"w1", {2, 1, 2, 1}, {1, 1, 0, 0}}));
  EXPECT_EQ(masks[1], (ElementMask{"w2", {1, 2}, {1, 0}}));
}

TEST(ToElementMasks, LeavesWholeGroupsAndDivisorsOut) {
  Network n;
  n.coupling.groups[GroupId(0)].members.push_back(Network::member(n.v, 0, Role::kWith));
  EXPECT_EQ(to_element_masks(n.b.graph, n.coupling, n.masks).size(), 2U);
  n.masks.keep = {{1, 1}};
  EXPECT_TRUE(to_element_masks(n.b.graph, n.coupling, n.masks).empty());
}

TEST(ToElementMasks, KeepsWhatAnyUseOfASharedVectorKeeps) {
  Network n;
  n.coupling.groups[GroupId(0)].members.push_back(Network::member(n.v, 0, Role::kOut));
  EXPECT_EQ(to_element_masks(n.b.graph, n.coupling, n.masks).size(), 3U);
  Value copy = n.b.graph.value(n.v);
  n.b.graph.values.push_back(copy);
  EXPECT_EQ(to_element_masks(n.b.graph, n.coupling, n.masks).size(), 2U);
}

TEST(ToElementMasks, CombinesAxesOfOneTensor) {
  Network n;
  const ValueId w = n.b.floats("w", {2, 2});
  n.b.graph.value(w).uses = {{NodeId(0), 1}};
  n.coupling.groups[GroupId(0)].members = {Network::member(w, 0, Role::kOut),
                                           Network::member(w, 1, Role::kIn)};
  const std::vector<ElementMask> masks = to_element_masks(n.b.graph, n.coupling, n.masks);
  ASSERT_EQ(masks.size(), 1U);
  EXPECT_EQ(masks[0].keep, (Keep{1, 0, 0, 0}));
}

}  // namespace
}  // namespace parsimony
