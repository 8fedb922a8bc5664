#include "parsimony/pruners/elements/elements.h"

#include <gtest/gtest.h>

#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using State = LayerSetting::State;
using Bits = std::vector<uint8_t>;
using test::member;

/// Two 1x1 convolutions; the group "g0" is what lies between them.
struct SparseLayers : test::Chain {
  Settings settings;
  AxisMasks masks;

  SparseLayers(const std::vector<float>& first, int hidden, const std::vector<float>& second,
               int out, const std::string& criterion) {
    add(first, hidden);
    add(second, out);
    coupling.groups[GroupId(0)].members.push_back(member(weights[1], 1, 1, hidden, Role::kIn));
    finish();
    settings.requests.resize(1);
    settings.requests[0].criterion = criterion;
    settings.requests[0].ratio = 0.5;
    settings.layers = {{State::kUnnamed, kNone}, {State::kPruned, 0}};
    masks = AxisMasks::all_kept(coupling);
  }

  ElementPruning run(const ElementOptions& options = {}) {
    return zero_elements(b.graph, coupling, settings, options, masks);
  }
};

TEST(ZeroElements, PatternsCountWhatTheMasksLeave) {
  SparseLayers net({1, 1, 1, 1, 1}, 5, {1, 9, 2, 3, 4, 5, 9, 6, 7, 8}, 2, "2:4");
  net.masks.keep[GroupId(0)][1] = 0;
  const ElementPruning found = net.run();
  ASSERT_EQ(found.matrices.size(), 1U);
  EXPECT_EQ(found.matrices[0].mask.keep, (Bits{0, 0, 0, 1, 1, 0, 0, 0, 1, 1}));
  EXPECT_EQ(found.masks().size(), 1U);
}

TEST(ZeroElements, ChannelsThatDieAreRemoved) {
  SparseLayers net({1, 1, 1, 1}, 4, {1, 9, 9, 2, 1, 8, 8, 2}, 2, "block:2x1");
  const ElementPruning found = net.run();
  EXPECT_EQ(found.zero_channels, 2);
  EXPECT_EQ(net.masks.keep[GroupId(0)], (Bits{0, 1, 1, 0}));
  EXPECT_TRUE(found.notes.empty());
}

TEST(ZeroElements, DeadChannelsAlongAPatternStay) {
  SparseLayers net({1, 1, 1, 1}, 4, {1, 9, 9, 2, 1, 8, 8, 2}, 2, "2:4");
  const ElementPruning found = net.run();
  EXPECT_EQ(found.zero_channels, 0);
  EXPECT_EQ(net.masks.keep[GroupId(0)], (Bits{1, 1, 1, 1}));
  EXPECT_EQ(found.notes,
            (std::vector<std::string>{"2 zero channels are kept: without them the patterns along "
                                      "their axis would no longer hold"}));
}

TEST(ZeroElements, WhereOnlyExactRemovalIsAllowedDeadChannelsOfMixingGroupsStay) {
  SparseLayers net({1, 1, 1, 1}, 4, {1, 9, 9, 2, 1, 8, 8, 2}, 2, "block:2x1");
  net.coupling.groups[GroupId(0)].mixes = true;
  EXPECT_EQ(net.run({.mixing = Mixing::kExact}).zero_channels, 0);
  EXPECT_EQ(net.masks.keep[GroupId(0)], (Bits{1, 1, 1, 1}));
  EXPECT_EQ(net.run().zero_channels, 2);
}

TEST(ZeroElements, LevelKeepsCounts) {
  SparseLayers net({1, 1, 1, 1}, 4, {1, 9, 9, 2, 1, 8, 8, 2}, 2, "level");
  const ElementPruning found = net.run();
  EXPECT_EQ(found.zeros, (std::vector<TensorZeros>{{"conv1.weight", 4}}));
  ASSERT_EQ(found.zero_masks.size(), 1U);
  EXPECT_EQ(found.zero_masks[0].keep, (Bits{0, 1, 1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(found.zero_channels, 2);
}

TEST(ZeroElements, NotesSayWhatKeepsItsElements) {
  SparseLayers net({1, 1, 1}, 3, {1, 2, 3, 4, 5, 6}, 2, "2:4");
  EXPECT_EQ(net.run().notes, (std::vector<std::string>{
                                 "weight \"conv1.weight\" keeps its elements: its input axis of 3 "
                                 "is shorter than a group of 4"}));
}

TEST(AddElementNeeds, AddsMomentsThatCriteriaRead) {
  SparseLayers net({1, 1, 1, 1}, 4, {1, 9, 9, 2, 1, 8, 8, 2}, 2, "sparsegpt:2:4");
  Needs needs;
  add_element_needs(net.b.graph, net.settings, needs);
  EXPECT_EQ(needs.inputs, (std::set<std::string>{"conv1.weight"}));
  EXPECT_EQ(needs.criteria, (std::set<std::string>{"sparsegpt:2:4"}));
  net.settings.requests[0].criterion = "2:4";
  needs = {};
  add_element_needs(net.b.graph, net.settings, needs);
  EXPECT_TRUE(needs.empty());
}

}  // namespace
}  // namespace parsimony
