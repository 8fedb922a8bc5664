// Random residual networks that lose blocks and channels in one plan. What they compute then is
// ONNX Runtime's to judge (oracle.blocks) and the executor's (tests/torch_io).
#include "parsimony/api/depth.h"

#include <gtest/gtest.h>

#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/make_plan.h"
#include "tests/properties/workbench.h"
#include "tests/support/residual_network.h"

namespace parsimony::test {
namespace {

constexpr unsigned kSeeds = 40;

std::string count_of(const std::string& bytes) {
  onnx::ModelProto model;
  model.ParseFromString(bytes);
  return std::to_string(model.graph().node_size()) + " nodes, " +
         std::to_string(model.graph().initializer_size()) + " tensors";
}

TEST(RandomResidualNetworks, LoseBlocksAndChannelsInOnePlan) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const ResidualNetwork random = residual_network(seed);
    Workbench bench(random.model);
    const DepthPruning found = plan_random_depth(bench.graph(), seed, random.blocks, 0.34);
    const Plan& plan = found.pruning.plan;
    EXPECT_EQ(plan.empty(), false) << seed;
    const std::string small = bench.apply(plan);
    EXPECT_EQ(misfit(small, bench.request(), true), "") << seed;

    // The costs are those of the file; nothing that was removed is left in it.
    const Workbench after(small);
    const Cost cost = CostModel(after.graph(), after.facts(), after.coupling()).dense();
    EXPECT_EQ(cost.params, found.pruning.small.params) << seed;
    EXPECT_EQ(cost.macs, found.pruning.small.macs) << seed;
    for (const Value& value : after.graph().values) {
      EXPECT_TRUE(!value.uses.empty() || value.is_output) << seed << ": " << value.name;
    }

    const Plan again = Plan::from_json(plan.to_json(), "plan.json");
    EXPECT_EQ(again, plan) << seed;
    EXPECT_EQ(count_of(bench.apply(again)), count_of(small)) << seed;
    EXPECT_TRUE(bench.apply(again) == small) << seed;
  }
}

}  // namespace
}  // namespace parsimony::test
