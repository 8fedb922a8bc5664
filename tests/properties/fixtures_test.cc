// P1, P3, P4, P6, P8, P9, P10 over every operator fixture.
#include <gtest/gtest.h>

#include "tests/properties/properties.h"

namespace parsimony::test {
namespace {

/// Runs a property over every fixture; what it returns, or throws, is the failure.
template <typename Property>
void over_fixtures(Property&& property) {
  for (const Fixture& fixture : all_fixtures()) {
    std::string failure;
    try {
      failure = property(Workbench(fixture), fixture.libonnx);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    EXPECT_EQ(failure, "") << fixture.name;
  }
}

TEST(Fixtures, P1PruningNothingGivesTheSameBytes) { over_fixtures(pruning_nothing); }

TEST(Fixtures, P3PredictedShapesAreTheInferredOnes) {
  over_fixtures([](const Workbench& bench, bool libonnx) {
    std::string failure;
    for (unsigned seed = 1; seed <= 4 && failure.empty(); ++seed) {
      const double ratio = 0.2 * seed;
      failure = prediction(bench, random_masks(bench.coupling(), ratio, seed), libonnx);
    }
    return failure;
  });
}

TEST(Fixtures, P4AnyOneChannelAloneCanBeRemoved) { over_fixtures(any_one_channel); }

TEST(Fixtures, P5NoPartOfAChannelCouldBeRemovedAlone) { over_fixtures(maximality); }

TEST(Fixtures, P6SlicingTwiceIsSlicingOnce) { over_fixtures(slicing_twice); }

TEST(Fixtures, P8MoreSparsityNeverCostsMore) { over_fixtures(monotone_cost); }

TEST(Fixtures, P9ReadingAndWritingIsLossless) { over_fixtures(lossless); }

TEST(Fixtures, P10AReplayedPlanGivesTheSameBytes) { over_fixtures(replayed); }

TEST(Fixtures, AnyOrderOfChoosingAxesIsSound) {
  over_fixtures([](const Workbench& bench, bool libonnx) {
    std::string failure;
    for (unsigned seed = 1; seed <= 6 && failure.empty(); ++seed) {
      failure = shuffled(bench, seed, libonnx);
    }
    return failure;
  });
}

}  // namespace
}  // namespace parsimony::test
