// Requests that tie layers together, or score them from another side.
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/allocate.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using State = LayerSetting::State;
using Keep = std::vector<uint8_t>;

/// Three layers of four outputs, each with a request of its own.
struct ThreeLayers : test::Chain {
  Settings settings;

  ThreeLayers() {
    add({4, 1, 3, 2}, 4);
    add({9, 0, 0, 0, 0, 8, 0, 0, 0, 0, 7, 0, 0, 0, 0, 1}, 4);
    add({1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4}, 4);
    parsimony::finish(b.graph);
    coupling.value_dim_classes.resize(b.graph.values.size());
    settings.requests.resize(3);
    for (int i = 0; i < 3; ++i) {
      settings.requests[i].ratio = 0.5;
      settings.layers.push_back({State::kPruned, i});
    }
  }

  Request& request(size_t i) { return settings.requests[i]; }
  Allocation run() const {
    return allocate(b.graph, test::no_facts(b.graph), coupling, settings, {});
  }
  std::string error() const {
    try {
      run();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST(Tied, DependentLayersLoseTheSameChannels) {
  ThreeLayers net;
  net.request(0).dependency_group = net.request(1).dependency_group = "a";
  // 4 + 9, 1 + 8, 3 + 7, 2 + 1
  const AxisMasks masks = net.run().masks;
  EXPECT_EQ(masks.keep[GroupId(0)], (Keep{1, 0, 1, 0}));
  EXPECT_EQ(masks.keep[GroupId(1)], (Keep{1, 0, 1, 0}));
  EXPECT_EQ(masks.keep[GroupId(2)], (Keep{0, 0, 1, 1}));
}

TEST(Tied, DependentLayersKeepTheirOwnBounds) {
  ThreeLayers net;
  net.request(0).dependency_group = net.request(1).dependency_group = "a";
  net.request(1).max_ratio = 0.25;
  const AxisMasks masks = net.run().masks;
  EXPECT_EQ(masks.keep[GroupId(0)], (Keep{1, 1, 1, 0}));
  EXPECT_EQ(masks.keep[GroupId(1)], (Keep{1, 1, 1, 0}));
}

TEST(Tied, ALayerThatStaysWholeKeepsTheOthersWhole) {
  ThreeLayers net;
  net.request(0).dependency_group = net.request(1).dependency_group = "a";
  // The second layer's group belongs to an excluded layer too.
  net.coupling.groups[GroupId(1)].members.push_back(net.coupling.groups[GroupId(2)].members[0]);
  net.settings.layers[NodeId(2)].state = State::kExcluded;
  const Allocation found = net.run();
  EXPECT_EQ(found.masks.kept(GroupId(0)), 4);
  EXPECT_EQ(found.masks.kept(GroupId(1)), 4);
  ASSERT_FALSE(found.conflicts.empty());
  EXPECT_EQ(found.conflicts.back().group, GroupId(0));
  EXPECT_EQ(
      found.conflicts.back().reason,
      "it is to lose the same channels as group g1, which is not pruned: the group is not pruned");
}

TEST(Tied, LayersWithOtherChannelsAreRefused) {
  ThreeLayers net;
  net.request(0).dependency_group = net.request(1).dependency_group = "a";
  net.coupling.groups[GroupId(1)] =
      test::group_of({test::member(net.weights[1], 1, 0, 2)}, 2, "g1");
  EXPECT_EQ(net.error(),
            "\"conv0\" and \"conv1\" are to lose the same channels, but what can be removed of "
            "their output channels is not alike; give them different groups, or align neither");
}

TEST(Tied, AlignedLayersFollowAndDoNotCount) {
  ThreeLayers net;
  net.request(1).aligned_with = NodeId(0);
  net.request(1).ratio = 0;
  net.request(2).aligned_with = NodeId(1);
  net.request(2).ratio = 0;
  const AxisMasks masks = net.run().masks;
  for (const auto& keep : masks.keep) EXPECT_EQ(keep, (Keep{1, 0, 1, 0}));
}

TEST(Tied, GlobalGroupsShareABudgetEachWithinItsBounds) {
  ThreeLayers net;
  for (size_t i = 0; i < 3; ++i) {
    net.request(i).global_group = "a";
    net.request(i).scope = Scope::kGlobal;
  }
  // Of their mean: 1.6 0.4 1.2 0.8, 1.44 1.28 1.12 0.16, 0.4 0.8 1.2 1.6
  AxisMasks masks = net.run().masks;
  EXPECT_EQ(masks.keep[GroupId(0)], (Keep{1, 0, 1, 0}));
  EXPECT_EQ(masks.keep[GroupId(1)], (Keep{1, 1, 0, 0}));
  EXPECT_EQ(masks.keep[GroupId(2)], (Keep{0, 0, 1, 1}));
  net.request(1).max_ratio = 0.25;
  net.request(2).min_ratio = 0.75;
  masks = net.run().masks;
  EXPECT_EQ(masks.kept(GroupId(1)), 3);
  EXPECT_EQ(masks.kept(GroupId(2)), 1);
}

TEST(Tied, EqualWidthsKeepChannelsOfTheirOwn) {
  ThreeLayers net;
  for (size_t i = 0; i < 3; ++i) {
    net.request(i).global_group = "a";
    net.request(i).scope = Scope::kGlobal;
    net.request(i).ratio = 0.4;
  }
  // Of their mean, ascending: 0.4 0.8 1.2 1.6, 0.16 1.12 1.28 1.44, 0.4 0.8 1.2 1.6
  AxisMasks masks = net.run().masks;
  EXPECT_EQ(masks.kept(GroupId(0)), 2);
  EXPECT_EQ(masks.kept(GroupId(1)), 3);
  EXPECT_EQ(masks.kept(GroupId(2)), 3);
  net.request(0).equal_width = net.request(1).equal_width = "w";  // 0.28 0.96 1.24 1.52
  const Allocation found = net.run();
  EXPECT_EQ(found.masks.keep[GroupId(0)], (Keep{1, 0, 1, 1}));
  EXPECT_EQ(found.masks.keep[GroupId(1)], (Keep{1, 1, 1, 0}));
  EXPECT_EQ(found.masks.keep[GroupId(2)], (Keep{0, 0, 1, 1}));
  EXPECT_NEAR(found.scores[GroupId(0)][1], 0.28, 1e-9);
  EXPECT_NEAR(found.scores[GroupId(1)][3], 0.28, 1e-9);

  for (size_t i = 0; i < 3; ++i) {  // each locally
    net.request(i).global_group.clear();
    net.request(i).scope = Scope::kLocal;
    net.request(i).ratio = 0.5;
  }
  net.request(1).keep_at_least = 3;
  masks = net.run().masks;
  EXPECT_EQ(masks.kept(GroupId(0)), 3);
  EXPECT_EQ(masks.kept(GroupId(1)), 3);
  EXPECT_EQ(masks.kept(GroupId(2)), 2);

  net.coupling.groups[GroupId(1)] =
      test::group_of({test::member(net.weights[1], 1, 0, 2)}, 2, "g1");
  EXPECT_EQ(net.error(), "\"equal_width_id\": w: its groups have 4 and 2 channels");
}

TEST(Tied, BlocksLoseTheSameNumber) {
  ThreeLayers net;
  net.request(2).metric_blocks = 2;
  EXPECT_EQ(net.run().masks.keep[GroupId(2)], (Keep{0, 1, 0, 1}));
  net.request(2).metric_blocks = 3;
  EXPECT_EQ(net.error(),
            "group g2 has 4 channels, which \"internal_metric_block\": 3 does not divide");
}

TEST(Tied, AThresholdIsInTheCriterionsUnit) {
  ThreeLayers net;
  net.request(1).threshold = 8;
  EXPECT_EQ(net.run().masks.keep[GroupId(1)], (Keep{1, 1, 0, 0}));
}

TEST(Tied, InChannelsAreJudgedByWhoReadsThem) {
  ThreeLayers net;
  net.coupling.groups[GroupId(0)].members.push_back(
      test::member(net.weights[1], 1, 1, 4, Role::kIn));
  net.settings.layers[NodeId(0)].state = State::kUnnamed;
  net.settings.layers[NodeId(2)].state = State::kUnnamed;
  net.request(1).in_channels = true;
  const Allocation found = net.run();
  EXPECT_EQ(found.masks.keep[GroupId(0)], (Keep{1, 1, 0, 0}));  // columns of conv1: 9 8 7 1
  EXPECT_EQ(found.masks.kept(GroupId(1)), 4);
  EXPECT_TRUE(found.conflicts.empty());
  net.settings.layers[NodeId(0)].state = State::kExcluded;
  const Allocation whole = net.run();
  EXPECT_EQ(whole.masks.kept(GroupId(0)), 4);
  EXPECT_EQ(whole.conflicts.at(0).reason,
            "\"conv0\" is excluded, and \"conv1\" is coupled with it: the group is not pruned");
}

TEST(Tied, GroupsThatMixStayWholeWhereOnlyExactOnesAreExpected) {
  ThreeLayers net;
  net.coupling.groups[GroupId(1)].mixes = true;
  EXPECT_EQ(net.run().masks.kept(GroupId(1)), 2);
  net.settings.mixing = Mixing::kExact;
  EXPECT_EQ(net.run().masks.kept(GroupId(1)), 4);
  EXPECT_EQ(net.run().masks.kept(GroupId(0)), 2);
}

TEST(Tied, LatencyIsLeftToWhoCanMeasure) {
  ThreeLayers net;
  net.request(0).budget = Budget::kLatency;
  EXPECT_EQ(net.run().masks.kept(GroupId(0)), 4);
  EXPECT_EQ(net.run().masks.kept(GroupId(1)), 2);
}

TEST(SharedBudgets, AreThoseOfOneGroupOrOneAmount) {
  Settings settings;
  settings.requests.resize(6);
  settings.requests[1].global_group = settings.requests[3].global_group = "a";
  settings.requests[2].amount = settings.requests[4].amount = 5;
  settings.requests[2].budget = settings.requests[4].budget = Budget::kMacs;
  settings.requests[5].amount = 7;
  settings.requests[5].budget = Budget::kParams;
  EXPECT_EQ(shared_budgets(settings), (std::vector<std::vector<int>>{{0}, {1, 3}, {2, 4}, {5}}));
}

}  // namespace
}  // namespace parsimony
