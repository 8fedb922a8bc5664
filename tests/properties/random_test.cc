// The properties over random networks. RapidCheck shrinks a failure to few steps and prints them;
// RC_PARAMS="seed=… max_success=1000" asks for others or more.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/properties/properties.h"
#include "tests/properties/random_network.h"

namespace parsimony::test {
namespace {

using Steps = std::vector<uint32_t>;

template <typename Property>
bool holds(const std::string& name, Property&& property) {
  return rc::check(name, [&](const Steps& steps, unsigned seed) {
    const std::string failure = property(Workbench(network_of(steps)), seed);
    if (!failure.empty()) RC_FAIL(failure);
  });
}

TEST(RandomNetworks, P3PredictedShapesAreTheInferredOnes) {
  EXPECT_TRUE(holds("half of the channels", [](const Workbench& bench, unsigned seed) {
    return prediction(bench, random_masks(bench.coupling(), 0.5, seed), true);
  }));
}

TEST(RandomNetworks, P4AnyOneChannelAloneCanBeRemoved) {
  EXPECT_TRUE(holds("one channel", [](const Workbench& bench, unsigned seed) {
    const auto& groups = bench.coupling().groups;
    if (groups.empty()) return std::string();
    const GroupId g(seed % groups.size());
    const int channel = static_cast<int>(seed / 16) % groups[g].size;
    return prediction(bench, without(bench.coupling(), {{g, std::abs(channel)}}), true);
  }));
}

TEST(RandomNetworks, P5NoPartOfAChannelCouldBeRemovedAlone) {
  EXPECT_TRUE(
      holds("parts", [](const Workbench& bench, unsigned) { return maximality(bench, true); }));
}

TEST(RandomNetworks, P6SlicingTwiceIsSlicingOnce) {
  EXPECT_TRUE(holds("twice", [](const Workbench& bench, unsigned) {
    const std::string failure = slicing_twice(bench, true);
    return failure == kOtherGroups ? std::string() : failure;
  }));
}

TEST(RandomNetworks, P8MoreSparsityNeverCostsMore) {
  EXPECT_TRUE(
      holds("cost", [](const Workbench& bench, unsigned) { return monotone_cost(bench, true); }));
}

// Found once by many more networks than a run draws.

TEST(FoundNetworks, AnEndThatACutLeavesBehindTheLastIndexIsCutToo) {
  const Workbench bench(network_of({0, 18970951, 0, 14662739, 0, 9489632, 32}));
  EXPECT_EQ(slicing_twice(bench, true), "");
}

TEST(FoundNetworks, AChannelThatComesBackDoesNotCostMoreThanAtALowerRatio) {
  const Workbench bench(network_of({4, 25, 138, 252, 33, 182, 210, 35, 0, 179, 32}));
  EXPECT_EQ(monotone_cost(bench, true), "");
}

TEST(RandomNetworks, P10AReplayedPlanGivesTheSameBytes) {
  EXPECT_TRUE(holds("replay", [](const Workbench& bench, unsigned) {
    const std::string failure = pruning_nothing(bench, true);
    return failure.empty() ? replayed(bench, true) : failure;
  }));
}

TEST(RandomNetworks, AnyOrderOfChoosingAxesIsSound) {
  EXPECT_TRUE(holds("order", [](const Workbench& bench, unsigned seed) {
    return shuffled(bench, 3 + seed % 1000, true);
  }));
}

}  // namespace
}  // namespace parsimony::test
