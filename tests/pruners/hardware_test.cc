#include <gtest/gtest.h>

#include "parsimony/pruners/candidates.h"
#include "parsimony/pruners/latency/model.h"
#include "tests/pruners/network.h"

namespace parsimony::test {
namespace {

/// Of a layer with so many channels, each `elements` of the axis.
int multiple(Target target, int channels, int elements = 1, DType type = DType::kFloat32) {
  Chain chain;
  chain.add(std::vector<float>(static_cast<size_t>(channels) * elements, 1), channels * elements);
  chain.finish();
  Group group = chain.coupling.groups[GroupId(0)];
  group.size = channels;
  std::vector<int32_t>& offsets = group.members[0].offsets;
  offsets.clear();
  for (int c = 0; c <= channels; ++c) offsets.push_back(c * elements);
  chain.b.graph.weights[chain.b.graph.value(chain.weights[0]).weight].dtype = type;
  return multiple_for(target, chain.b.graph, group);
}

TEST(MultipleFor, IsABlockOfTheTargetsKernels) {
  EXPECT_EQ(multiple(Target::kGeneric, 64), 8);
  EXPECT_EQ(multiple(Target::kX86Avx2, 64), 8);
  EXPECT_EQ(multiple(Target::kX86Avx512, 64), 16);
  EXPECT_EQ(multiple(Target::kX86Avx512, 64, 1, DType::kInt8), 16);
  EXPECT_EQ(multiple(Target::kArmNeon, 64), 8);
  EXPECT_EQ(multiple(Target::kArmNeon, 64, 1, DType::kInt8), 16);
  EXPECT_EQ(multiple(Target::kCudaTensorCore, 64, 1, DType::kFloat16), 8);
  EXPECT_EQ(multiple(Target::kCudaTensorCore, 64, 1, DType::kUInt8), 16);
}

TEST(MultipleFor, LeavesSmallGroupsAChoice) {
  EXPECT_EQ(multiple(Target::kX86Avx512, 16), 8);
  EXPECT_EQ(multiple(Target::kX86Avx512, 12), 4);
  EXPECT_EQ(multiple(Target::kX86Avx512, 2), 1);
}

TEST(MultipleFor, CountsElementsOfTheAxis) {
  EXPECT_EQ(multiple(Target::kX86Avx2, 16, 4), 2) << "heads of four";
  EXPECT_EQ(multiple(Target::kX86Avx2, 16, 64), 1) << "heads of 64 fill blocks alone";
  EXPECT_EQ(multiple(Target::kX86Avx2, 16, 3), 8);
}

/// One request for the first layer.
Settings targeting(Target target) {
  Settings settings;
  settings.requests.resize(1);
  settings.requests[0].target = target;
  settings.layers.resize(1);
  settings.layers[NodeId(0)] = {LayerSetting::State::kPruned, 0, 0};
  return settings;
}

TEST(MultipleFor, BoundsWhatIsRemoved) {
  Chain chain;
  chain.add(std::vector<float>(64, 1), 64);
  chain.finish();
  Settings settings = targeting(Target::kX86Avx2);
  settings.requests[0].round_to = 3;
  const Scored scored = score_units(chain.b.graph, chain.coupling, settings, {});
  ASSERT_EQ(scored.candidates.size(), 1U);
  EXPECT_EQ(scored.candidates[0].limits.round_to, 24) << "both";
}

/// The times of kernels with blocks of so many channels.
int found_in(int block, const std::vector<int>& widths) {
  std::vector<double> seconds;
  for (const int width : widths) seconds.push_back(0.5 + (width + block - 1) / block * block);
  return multiple_of_steps(widths, seconds);
}

TEST(MultipleOfSteps, IsWhereTimesLeap) {
  EXPECT_EQ(found_in(16, {1, 16, 17, 18, 20, 24, 32, 48, 64}), 16);
  EXPECT_EQ(found_in(8, {1, 16, 24, 25, 26, 28, 32, 48, 64}), 8);
  EXPECT_EQ(found_in(4, {1, 16, 24, 25, 26, 28, 32, 48, 64}), 4)
      << "a step behind 24 is one of 8 too";
  EXPECT_EQ(found_in(32, {1, 32, 34, 36, 40, 64, 96, 128}), 32) << "one need not have it exactly";
  EXPECT_EQ(found_in(1, {1, 16, 24, 25, 26, 28, 32, 48, 64}), 0) << "time grows with the width";
  EXPECT_EQ(found_in(16, {1, 16, 32, 48, 64}), 0) << "nobody looked";
  EXPECT_EQ(found_in(8, {8}), 0);
}

TEST(MultipleOfSteps, GoesBeforeDocumentedWidths) {
  Chain chain;
  chain.add(std::vector<float>(64, 1), 64);
  chain.finish();
  Settings settings = targeting(Target::kX86Avx512);
  const auto rounded_to = [&] {
    return score_units(chain.b.graph, chain.coupling, settings, {}).candidates[0].limits.round_to;
  };
  EXPECT_EQ(rounded_to(), 16);
  settings.multiples.assign(chain.coupling.groups.size(), 4);
  EXPECT_EQ(rounded_to(), 4);
  settings.multiples.assign(chain.coupling.groups.size(), 0);
  EXPECT_EQ(rounded_to(), 16) << "no table tells";
}

}  // namespace
}  // namespace parsimony::test
