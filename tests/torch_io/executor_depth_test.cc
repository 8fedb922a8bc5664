// Networks without some of their blocks: the executor's masked original, in which they add nothing,
// against the small network.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "parsimony/api/depth.h"
#include "parsimony/api/prune.h"
#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/network.h"
#include "tests/support/fixture.h"
#include "tests/support/residual_network.h"
#include "tests/torch_io/executor_support.h"

namespace parsimony::test {
namespace {

struct BlockNetwork {
  explicit BlockNetwork(unsigned seed) {
    const ResidualNetwork random = residual_network(seed);
    blocks = random.blocks;
    write_file(folder / "net.onnx", random.model.SerializeAsString());
    file.emplace(folder / "net.onnx");
    graph = onnx_io::to_graph(*file);
    probe = choose_probe(graph);
  }

  DepthPruning plan(int count, double ratio) const {
    PruneRequest request;
    PruneServices services;
    request.depth = DepthRequest{.count = count};
    services.influence = [](const Graph&, const std::vector<ResidualBlock>& found) {
      return std::vector<double>(found.size(), 0.5);
    };
    Shorthand shorthand;
    shorthand.ratio = ratio;
    request.config = from_shorthand(shorthand);
    return plan_depth(graph, request, services);
  }

  /// Of the outputs of the masked original and of the edited file.
  double difference(const Plan& plan) const {
    onnx_io::ModelFile small_file(folder / "net.onnx");
    onnx_io::OnnxEditor editor(small_file);
    apply_plan(plan, graph, probe, editor);
    const Graph small = onnx_io::to_graph(small_file);  // as it is before it was written
    double largest = 0;
    for (int input = 1; input <= 2; ++input) {
      const Tensors x = seeded_inputs(graph, probe, input);
      const Tensors masked = run(graph, x, &plan);
      const Tensors expected = run(small, x);
      for (size_t o = 0; o < expected.size(); ++o) {
        largest = std::max(largest, relative_error(masked.at(o), expected[o]));
      }
    }
    return largest;
  }

  TemporaryFolder folder;
  std::optional<onnx_io::ModelFile> file;
  Graph graph;
  Probe probe;
  int blocks = 0;
};

TEST(ExecutorDepth, TheSmallNetworkIsTheOneWhoseBlocksAddNothing) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    const BlockNetwork net(seed);
    for (const int count : {std::min(1, net.blocks), net.blocks}) {
      EXPECT_LE(net.difference(net.plan(count, 0).pruning.plan), 1e-4) << seed << ", " << count;
      EXPECT_LE(net.difference(net.plan(count, 0.34).pruning.plan), 1e-4) << seed << ", " << count;
    }
  }
}

TEST(ExecutorDepth, ABlockThatWasLeftInIsFound) {
  const BlockNetwork net(1);
  Plan plan = net.plan(1, 0).pruning.plan;
  ASSERT_EQ(plan.blocks.size(), 1U);
  EXPECT_LE(net.difference(plan), 1e-4);
  const Tensors x = seeded_inputs(net.graph, net.probe, 1);
  EXPECT_GT(relative_error(run(net.graph, x)[0], run(net.graph, x, &plan)[0]), 1e-2);
  torch_io::TorchEngine engine;
  EXPECT_FALSE(differs(net.graph, plan, net.probe, {}, engine));
  Plan other = plan;
  other.blocks[0].kept_input = 1 - other.blocks[0].kept_input;
  EXPECT_GT(relative_error(run(net.graph, x, &other)[0], run(net.graph, x, &plan)[0]), 1e-2);
}

TEST(ExecutorDepth, RefusesABlockThatIsNotThere) {
  const BlockNetwork net(0);
  Plan plan;
  plan.blocks = {{"nowhere", 0}};
  try {
    run(net.graph, seeded_inputs(net.graph, net.probe, 1), &plan);
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_STREQ(error.what(),
                 "the network has no addition \"nowhere\" whose block could be removed");
  }
}

}  // namespace
}  // namespace parsimony::test
