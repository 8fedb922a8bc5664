#include "parsimony/pruners/allocate.h"

#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using State = LayerSetting::State;
using Keep = std::vector<uint8_t>;

struct AllocatedLayers : test::Chain {
  Settings settings;

  AllocatedLayers() {
    add({4, 1, 3, 2}, 4);
    add({100, 300, 200, 200, 100, 0, 0, 200}, 2);
    finish();
    settings.requests.resize(1);
    settings.requests[0].ratio = 0.5;
    settings.layers = {{State::kPruned, 0}, {State::kPruned, 0}};
  }

  Allocation run() const {
    return allocate(b.graph, test::no_facts(b.graph), coupling, settings, {});
  }
};

TEST(Allocate, LocallyRemovesTheLowestOfEveryGroup) {
  const Allocation found = AllocatedLayers().run();
  EXPECT_EQ(found.masks.keep[GroupId(0)], (Keep{1, 0, 1, 0}));
  EXPECT_EQ(found.masks.keep[GroupId(1)], (Keep{1, 0}));
  EXPECT_TRUE(found.conflicts.empty());
  EXPECT_EQ(found.given_back, 0);
}

TEST(Allocate, GloballyComparesGroupsOfDifferentScale) {
  AllocatedLayers net;
  net.settings.requests[0].scope = Scope::kGlobal;
  // Relative to the mean: 1.6 0.4 1.2 0.8 and 1.45 0.55
  const Allocation found = net.run();
  EXPECT_EQ(found.masks.keep[GroupId(0)], (Keep{1, 0, 1, 0}));
  EXPECT_EQ(found.masks.keep[GroupId(1)], (Keep{1, 0}));
}

TEST(Allocate, SaysWhatRankedTheChannels) {
  AllocatedLayers net;
  const Allocation found = net.run();
  ASSERT_EQ(found.scores.size(), 2U);
  EXPECT_EQ(found.scores[GroupId(0)], (std::vector<double>{1.6, 0.4, 1.2, 0.8}));
  net.settings.layers[NodeId(1)].state = State::kExcluded;
  EXPECT_TRUE(net.run().scores[GroupId(1)].empty());
}

TEST(Allocate, ByOutputsTakesWhatTheyMissLeast) {
  AllocatedLayers net;
  net.settings.requests[0].scope = Scope::kOutputs;
  // Three of six channels go. The second layer's are worth nearly nothing until the last of them.
  const auto importance = [&](std::span<const GroupId> groups, const Candidate&) {
    return groups[0] == GroupId(0) ? std::vector<double>{0, 0.1, 0.2, 0.5, 1}
                                   : std::vector<double>{0, 0.99, 1};
  };
  const Allocation found = allocate(net.b.graph, test::no_facts(net.b.graph), net.coupling,
                                    net.settings, {}, {}, importance);
  EXPECT_EQ(found.masks.kept(GroupId(0)), 2);
  EXPECT_EQ(found.masks.keep[GroupId(1)], (Keep{1, 0}));
  EXPECT_THROW(net.run(), UnsupportedError) << "nobody runs the network";
}

TEST(Allocate, ByOutputsRanksWhatIsNotKnownLast) {
  AllocatedLayers net;
  net.settings.requests[0].scope = Scope::kOutputs;
  const auto importance = [&](std::span<const GroupId> groups, const Candidate&) {
    return groups[0] == GroupId(0) ? std::vector<double>{} : std::vector<double>{0, 0.5, 1};
  };
  net.settings.requests[0].ratio = 1.0 / 6;
  const Allocation found = allocate(net.b.graph, test::no_facts(net.b.graph), net.coupling,
                                    net.settings, {}, {}, importance);
  EXPECT_EQ(found.masks.kept(GroupId(0)), 4);
  EXPECT_EQ(found.masks.kept(GroupId(1)), 1);
  ASSERT_EQ(found.conflicts.size(), 1U);
  EXPECT_EQ(found.conflicts[0].group, GroupId(0));
}

TEST(Allocate, RequestsHaveTheirOwnBudgets) {
  AllocatedLayers net;
  net.settings.requests.push_back(net.settings.requests[0]);
  net.settings.requests[1].ratio = 0.25;
  net.settings.layers[NodeId(1)].request = 1;
  const Allocation found = net.run();
  EXPECT_EQ(found.masks.kept(GroupId(0)), 2);
  EXPECT_EQ(found.masks.kept(GroupId(1)), 2);
}

TEST(Allocate, LeavesExcludedGroupsWhole) {
  AllocatedLayers net;
  net.settings.layers[NodeId(0)].state = State::kExcluded;
  const Allocation found = net.run();
  EXPECT_EQ(found.masks.kept(GroupId(0)), 4);
  EXPECT_EQ(found.masks.kept(GroupId(1)), 1);
}

TEST(Allocate, SaysWhatCannotBeReached) {
  AllocatedLayers net;
  net.settings.requests[0].scope = Scope::kGlobal;
  net.settings.requests[0].ratio = 0.9;
  net.settings.requests[0].max_ratio = 0.5;
  const Allocation found = net.run();
  ASSERT_EQ(found.conflicts.size(), 1U);
  EXPECT_EQ(found.conflicts[0].group, kNone);
  EXPECT_EQ(found.conflicts[0].reason,
            "asked to remove 90% of the channels: no more than 50.0% can go");
}

TEST(Allocate, GivesBackTheBestChannelOfAnEmptyDimension) {
  AllocatedLayers net;
  // A dimension class of its own that only the channels 1 and 3 of the first group reach.
  net.coupling.element_channel.insert(net.coupling.element_channel.end(),
                                      {{GroupId(0), 1}, {GroupId(0), 3}});
  net.coupling.dim_class_begin.push_back(static_cast<int64_t>(net.coupling.element_channel.size()));
  const Allocation found = net.run();
  EXPECT_EQ(found.masks.keep[GroupId(0)], (Keep{1, 0, 1, 1}));
  EXPECT_EQ(found.given_back, 1);
}

TEST(Allocate, AHigherRatioRemovesASuperset) {
  for (Scope scope : {Scope::kLocal, Scope::kGlobal}) {
    AllocatedLayers net;
    net.settings.requests[0].scope = scope;
    net.settings.requests[0].ratio = 0;
    AxisMasks before = net.run().masks;
    EXPECT_EQ(before.kept(GroupId(0)) + before.kept(GroupId(1)), 6);
    for (int percent = 5; percent < 100; percent += 5) {
      net.settings.requests[0].ratio = percent / 100.0;
      const AxisMasks now = net.run().masks;
      for (const GroupId g : now.keep.ids()) {
        for (size_t c = 0; c < now.keep[g].size(); ++c)
          EXPECT_LE(now.keep[g][c], before.keep[g][c]);
      }
      before = now;
    }
    EXPECT_EQ(before.kept(GroupId(0)), 1);
  }
}

}  // namespace
}  // namespace parsimony
