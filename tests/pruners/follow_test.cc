#include <gtest/gtest.h>

#include "parsimony/pruners/units.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using State = LayerSetting::State;
using test::Builder;
using test::group_of;
using test::member;

/// Two convolutions whose outputs are added: one group.
struct Residual {
  Builder b;
  Coupling coupling;
  Settings settings;

  Residual() {
    const ValueId x = b.input("x", {1, 2, 1, 1});
    const ValueId w1 = b.floats("w1", {2, 2, 1, 1});
    const ValueId w2 = b.floats("w2", {2, 2, 1, 1});
    const ValueId bias = b.floats("bias", {2});
    const ValueId y1 = b.node("Conv", {x, w1, bias}, "conv1");
    const ValueId y2 = b.node("Conv", {x, w2}, "conv2");
    b.node("Add", {y1, y2}, "sum");
    finish(b.graph);
    coupling.groups = {
        group_of({member(w1, 0, 0, 2), member(bias, 0, 0, 2), member(w2, 1, 0, 2)}, 2)};
    settings.requests.resize(2);
    settings.requests[0].ratio = 0.5;
    settings.requests[1].ratio = 0.25;
    settings.layers.resize(3);
  }

  void set(size_t node, State state, int request = kNone) {
    settings.layers[NodeId(node)] = {state, request};
  }

  Followed run() const { return follow(b.graph, Layers(b.graph), coupling, settings); }
};

TEST(Follow, TakesTheRequestOfAllLayers) {
  Residual net;
  net.set(0, State::kPruned, 0);
  net.set(1, State::kPruned, 0);
  EXPECT_EQ(net.run().request, (PerGroup<int>{0}));
  EXPECT_TRUE(net.run().conflicts.empty());
}

TEST(Follow, LeavesWholeWhatNobodyNames) {
  Residual net;
  net.set(1, State::kExcluded);
  EXPECT_EQ(net.run().request, (PerGroup<int>{kNone}));
  EXPECT_TRUE(net.run().conflicts.empty());
}

TEST(Follow, AnExcludedLayerKeepsTheGroupWhole) {
  Residual net;
  net.set(0, State::kPruned, 0);
  net.set(1, State::kExcluded);
  const Followed found = net.run();
  EXPECT_EQ(found.request, (PerGroup<int>{kNone}));
  ASSERT_EQ(found.conflicts.size(), 1U);
  EXPECT_EQ(found.conflicts[0].group, GroupId(0));
  EXPECT_EQ(found.conflicts[0].reason,
            "\"conv2\" is excluded, and \"conv1\" is coupled with it: the group is not pruned");
}

TEST(Follow, AnUnnamedLayerKeepsTheGroupWhole) {
  Residual net;
  net.set(1, State::kPruned, 0);
  EXPECT_EQ(net.run().request, (PerGroup<int>{kNone}));
  EXPECT_EQ(net.run().conflicts.at(0).reason,
            "\"conv1\" is not named by the configuration, and \"conv2\" is coupled with it: the "
            "group is not pruned");
}

TEST(Follow, TheSmallestRatioWins) {
  Residual net;
  net.set(0, State::kPruned, 0);
  net.set(1, State::kPruned, 1);
  EXPECT_EQ(net.run().request, (PerGroup<int>{1}));
  EXPECT_EQ(net.run().conflicts.at(0).reason,
            "\"conv1\" asks for 0.5, \"conv2\" asks for 0.25: the group follows the latter");
}

TEST(Follow, LevelDoesNotAskForChannels) {
  Residual net;
  net.settings.requests[1].criterion = "level";
  net.set(0, State::kPruned, 0);
  net.set(1, State::kPruned, 1);
  EXPECT_EQ(net.run().request, (PerGroup<int>{kNone}));
  EXPECT_EQ(net.run().conflicts.at(0).reason,
            "\"conv2\" is pruned by single elements, and \"conv1\" is coupled with it: the group "
            "is not pruned");
}

TEST(Follow, ConsumersAndVectorsAreNoLayersOfAGroup) {
  Residual net;
  net.set(0, State::kPruned, 0);
  net.coupling.groups[GroupId(0)].members[2].role = Role::kIn;
  EXPECT_EQ(net.run().request, (PerGroup<int>{0}));
  net.coupling.groups[GroupId(0)].members.erase(net.coupling.groups[GroupId(0)].members.begin());
  EXPECT_EQ(net.run().request, (PerGroup<int>{kNone}));
}

TEST(Follow, ReadersAreTheLayersOfWhatWeightsAloneMake) {
  Residual net;
  net.set(0, State::kPruned, 0);
  net.set(1, State::kPruned, 0);
  for (Member& member : net.coupling.groups[GroupId(0)].members) member.role = Role::kIn;
  EXPECT_EQ(net.run().request, (PerGroup<int>{0}));
  net.set(1, State::kExcluded);
  EXPECT_EQ(net.run().request, (PerGroup<int>{kNone}));
}

}  // namespace
}  // namespace parsimony
