#include "parsimony/pruners/level.h"

#include <gtest/gtest.h>

#include "parsimony/masks/mask.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using State = LayerSetting::State;
using Zeros = std::vector<TensorZeros>;

struct LevelLayers : test::Chain {
  Settings settings;

  LevelLayers() {
    add({1, 2, 3, 4, 5}, 5);
    add({0.1F, 0.2F, 0.3F, 0.4F, 9, 9, 9, 9, 9, 9}, 2);
    finish();
    settings.requests.resize(1);
    settings.requests[0].criterion = "level";
    settings.requests[0].ratio = 0.5;
    settings.layers = {{State::kPruned, 0}, {State::kPruned, 0}};
  }
};

TEST(PruneElements, LocallyTakesTheRatioOfEach) {
  const LevelLayers net;
  EXPECT_EQ(prune_elements(net.b.graph, net.settings),
            (Zeros{{"conv0.weight", 2}, {"conv1.weight", 5}}));
}

TEST(PruneElements, GloballyHasOneThreshold) {
  LevelLayers net;
  net.settings.requests[0].scope = Scope::kGlobal;
  EXPECT_EQ(prune_elements(net.b.graph, net.settings),
            (Zeros{{"conv0.weight", 3}, {"conv1.weight", 4}}));
}

TEST(PruneElements, LimitsHoldForEveryMatrix) {
  LevelLayers net;
  Request& request = net.settings.requests[0];
  request.max_ratio = 0.4;
  EXPECT_EQ(prune_elements(net.b.graph, net.settings),
            (Zeros{{"conv0.weight", 2}, {"conv1.weight", 4}}));
  request.scope = Scope::kGlobal;
  // Of 7 in all the first may lose 2, and the second 4.
  EXPECT_EQ(prune_elements(net.b.graph, net.settings),
            (Zeros{{"conv0.weight", 2}, {"conv1.weight", 4}}));
  request.max_ratio = 1;
  request.min_ratio = 0.5;
  // The second loses 5 at least, so the first gives one back: to its own limit of 3.
  EXPECT_EQ(prune_elements(net.b.graph, net.settings),
            (Zeros{{"conv0.weight", 3}, {"conv1.weight", 5}}));
}

TEST(PruneElements, AThresholdIsInTheWeightsOwnUnit) {
  LevelLayers net;
  net.settings.requests[0].threshold = 0.35;
  net.settings.requests[0].ratio = 0;
  EXPECT_EQ(prune_elements(net.b.graph, net.settings), (Zeros{{"conv1.weight", 3}}));
}

TEST(PruneElements, CountsSayWhichElements) {
  LevelLayers net;
  net.settings.requests[0].scope = Scope::kGlobal;
  const Zeros zeros = prune_elements(net.b.graph, net.settings);
  const ElementMask mask = mask_smallest(net.b.graph.weights[WeightId(0)], zeros[0].smallest);
  EXPECT_EQ(mask.keep, (std::vector<uint8_t>{0, 0, 0, 1, 1}));
}

TEST(PruneElements, LeavesOtherLayersAndCriteriaAlone) {
  LevelLayers net;
  net.settings.layers[NodeId(0)].state = State::kExcluded;
  EXPECT_EQ(prune_elements(net.b.graph, net.settings), (Zeros{{"conv1.weight", 5}}));
  net.settings.requests[0].criterion = "l1";
  EXPECT_TRUE(prune_elements(net.b.graph, net.settings).empty());
}

TEST(PruneElements, ASharedMatrixFollowsItsMostCarefulLayer) {
  LevelLayers net;
  net.b.graph.nodes[NodeId(1)].inputs[1] = net.weights[0];
  net.settings.requests.push_back(net.settings.requests[0]);
  net.settings.requests[1].ratio = 0.2;
  net.settings.layers[NodeId(1)].request = 1;
  EXPECT_EQ(prune_elements(net.b.graph, net.settings), (Zeros{{"conv0.weight", 1}}));
  net.settings.layers[NodeId(1)].state = State::kUnnamed;
  EXPECT_TRUE(prune_elements(net.b.graph, net.settings).empty());
}

}  // namespace
}  // namespace parsimony
