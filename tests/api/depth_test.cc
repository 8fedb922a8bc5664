#include "parsimony/api/depth.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/small_network.h"
#include "tests/support/fixture.h"
#include "tests/support/residual_network.h"

namespace parsimony::test {
namespace {

using Names = std::vector<std::string>;

/// Three basic blocks d1, d2, d3 of width 8 for images [1, 3, 8, 8]; the layers of block i are ai
/// and ci.
class Depth : public ::testing::Test {
 protected:
  Depth() {
    write_file(folder_ / "net.onnx", three_blocks("1", 8, "pads=[1,1,1,1]", 5).SerializeAsString());
    file_ = std::make_unique<onnx_io::ModelFile>(folder_ / "net.onnx");
    graph_ = onnx_io::to_graph(*file_);
    services_.influence = [this](const Graph&, const std::vector<ResidualBlock>& blocks) {
      EXPECT_EQ(blocks.size(), influences_.size());
      return influences_;
    };
  }

  static ConfigList config(double ratio, const std::string& budget = "channels",
                           const Names& exclude = {}) {
    Shorthand shorthand;
    shorthand.ratio = ratio;
    shorthand.budget = budget;
    shorthand.exclude = exclude;
    return from_shorthand(shorthand);
  }

  DepthPruning plan(const std::string& layers, const ConfigList& asked) {
    PruneRequest request = asked;
    request.depth = parse_depth(layers, "--layers");
    return plan_depth(graph_, request, services_);
  }

  static Names removed(const DepthPruning& pruning) {
    Names names;
    for (const PlanBlock& block : pruning.pruning.plan.blocks) names.push_back(block.add);
    return names;
  }

  /// The file that the plan makes, and its graph.
  std::string applied(const Plan& made) const {
    onnx_io::ModelFile file(folder_ / "net.onnx");
    const Graph graph = onnx_io::to_graph(file);
    onnx_io::OnnxEditor editor(file);
    apply_plan(made, graph, choose_probe(graph), editor);
    file.write(folder_ / "small.onnx");
    return read_file(folder_ / "small.onnx");
  }

  TemporaryFolder folder_;
  std::unique_ptr<onnx_io::ModelFile> file_;
  Graph graph_;
  std::vector<double> influences_ = {0.3, 0.1, 0.2};
  PruneServices services_;
};

TEST_F(Depth, ThoseOfLeastInfluenceGo) {
  EXPECT_EQ(removed(plan("0", config(0))), Names{});
  EXPECT_EQ(removed(plan("1", config(0))), Names{"d2"});
  EXPECT_EQ(removed(plan("2", config(0))), (Names{"d2", "d3"}));
  EXPECT_EQ(removed(plan("67%", config(0))), (Names{"d2", "d3"}));
  EXPECT_EQ(removed(plan("66%", config(0))), Names{"d2"});
}

TEST_F(Depth, TheFileLosesTheBlocksNodesAndWeights) {
  const DepthPruning pruning = plan("2", config(0));
  onnx::ModelProto small;
  ASSERT_TRUE(small.ParseFromString(applied(pruning.pruning.plan)));
  Names nodes;
  for (const auto& node : small.graph().node()) nodes.push_back(node.output(0));
  EXPECT_EQ(nodes, (Names{"s", "r0", "a1", "b1", "c1", "d1", "r1", "r2", "r3", "g", "f", "y"}));
  EXPECT_EQ(small.graph().initializer_size(), 4);  // W0, A1, C1, W
  EXPECT_EQ(pruning.report.blocks[1].cost.params, 2 * 8 * 8 * 9);
  EXPECT_EQ(pruning.report.blocks[1].cost.macs, 2 * 64 * 8 * 8 * 9);
  EXPECT_EQ(pruning.pruning.dense.params - pruning.pruning.small.params, 4 * 8 * 8 * 9);
}

TEST_F(Depth, OnePlanHasBlocksAndWidths) {
  const DepthPruning pruning = plan("1", config(0.5));
  const Plan& made = pruning.pruning.plan;
  EXPECT_EQ(removed(pruning), Names{"d2"});
  for (const PlanGroup& group : made.groups) {
    EXPECT_EQ(group.kept, 4) << group.id;
    for (const PlanSlice& slice : group.slices) {
      EXPECT_NE(slice.tensor, "A2");
      EXPECT_NE(slice.tensor, "C2");
    }
  }
  const std::string bytes = applied(made);
  const Plan again = Plan::from_json(made.to_json(), "p.json");
  EXPECT_EQ(again, made);
  EXPECT_EQ(applied(again), bytes);
}

TEST_F(Depth, ABudgetIsTheWholeNetworks) {
  const DepthPruning pruning = plan("1", config(0, "macs=50%"));
  const auto& [dense, small] = std::pair(pruning.pruning.dense.macs, pruning.pruning.small.macs);
  EXPECT_LE(2 * small, dense);
  EXPECT_GT(2 * small, dense * 8 / 10);
  // Three blocks are more than half of the network: widths need not lose anything.
  const DepthPruning deep = plan("3", config(0, "macs=50%"));
  EXPECT_TRUE(deep.pruning.plan.groups.empty());
  EXPECT_LT(2 * deep.pruning.small.macs, deep.pruning.dense.macs);
  const DepthPruning amount = plan("3", config(0, "params=5k"));
  EXPECT_TRUE(amount.pruning.plan.groups.empty());
}

TEST_F(Depth, AutoTakesTheNumberWithTheLeastError) {
  // As wide a network as possible is expected: each block costs the same error, channels another.
  const auto error_of = [&](double block, double channel) {
    return [=, this](const Plan& plan) {
      const SmallNetwork made(graph_, plan);
      const Graph& small = made.graph();
      const auto blocks = static_cast<double>(graph_.nodes.size() - small.nodes.size()) / 4;
      const double narrow = 8 - static_cast<double>(small.weight(WeightId(0)).dims[0]);
      return block * blocks + channel * narrow;
    };
  };
  services_.error = error_of(1, 0.01);
  EXPECT_EQ(removed(plan("auto", config(0, "macs=50%"))), Names{});
  services_.error = error_of(0.01, 1);
  const DepthPruning deep = plan("auto", config(0, "macs=50%"));
  EXPECT_GT(removed(deep).size(), 0U);
  ASSERT_GT(deep.report.candidates.size(), 1U);
  for (const DepthCandidate& candidate : deep.report.candidates) {
    EXPECT_TRUE(candidate.met);
    EXPECT_LE(2 * candidate.cost.macs, deep.pruning.dense.macs);
  }
}

TEST_F(Depth, AnExcludedLayerProtectsItsBlock) {
  const DepthPruning pruning = plan("2", config(0.5, "channels", {"c2"}));
  EXPECT_EQ(removed(pruning), (Names{"d1", "d3"}));
  EXPECT_TRUE(pruning.report.blocks[1].excluded);
}

TEST_F(Depth, EntriesThatNameLayersOfARemovedBlockStayValid) {
  ConfigList asked = config(0.5);
  asked.entries[0].op_names = {"a2", "a1"};
  const DepthPruning pruning = plan("1", asked);
  EXPECT_EQ(removed(pruning), Names{"d2"});
  ASSERT_EQ(pruning.pruning.plan.groups.size(), 1U);
  EXPECT_EQ(pruning.pruning.plan.groups[0].slices[0].tensor, "A1");
}

template <typename E>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "(no error)";
}

TEST_F(Depth, SaysWhatCannotBeMeant) {
  EXPECT_EQ(message_of<ConfigError>([&] { plan("4", config(0)); }),
            "--layers 4: the network has 3 residual blocks; `parsimony explain --blocks` lists "
            "them");
  EXPECT_EQ(message_of<ConfigError>([&] { plan("3", config(0, "channels", {"a1"})); }),
            "--layers 3: the network has 3 residual blocks, of which 1 are kept because the "
            "configuration "
            "excludes layers in them; `parsimony explain --blocks` lists them");
  EXPECT_EQ(message_of<ConfigError>([&] { plan("auto", config(0.5)); }),
            "--layers auto requires a budget: pass --budget macs=50% or params=50%");
  EXPECT_EQ(message_of<UnsupportedError>([&] { plan("1", config(0, "latency_ms=5")); }),
            "--layers does not support budgets of milliseconds, of bytes or of several amounts; "
            "pass --budget macs=… or params=…");
  for (const char* text : {"", "-1", "1.5", "many", "101%", "1e99", "3 ", "nan"}) {
    EXPECT_EQ(
        message_of<ConfigError>([&] { parse_depth(text, "--layers"); }),
        "--layers: found \"" + std::string(text) +
            "\", expected a number of blocks such as 3, a share of them such as 25%, or auto");
  }
}

TEST_F(Depth, WhatIsInsideOfABlockLeavesWithIt) {
  Plan plan;
  plan.blocks = {{"d2", 1}};
  const std::string without = applied(plan);
  plan.blocks = {{"d2", 1}, {"c2", 0}};
  EXPECT_EQ(applied(plan), without);
}

TEST_F(Depth, APlanThatDoesNotFitChangesNothing) {
  Plan plan;
  plan.blocks = {{"d2", 1}, {"y", 0}};
  EXPECT_EQ(message_of<ModelError>([&] { applied(plan); }),
            "the block of node \"y\" cannot be removed: its result is an output of the network");
  plan.blocks = {{"b1", 1}};
  EXPECT_EQ(message_of<ModelError>([&] { applied(plan); }),
            "the block of node \"b1\" cannot be removed: it has no operand 1");
}

}  // namespace
}  // namespace parsimony::test
