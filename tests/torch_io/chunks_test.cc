// Weights that are read again, some rows at a time and once for several inputs.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/torch_io/network.h"
#include "tests/support/counting_source.h"
#include "tests/support/model.h"

namespace parsimony::torch_io {
namespace {

constexpr int64_t kWords = 300;

/// Words to words, half of whose channels leave; the last matrix has more than one piece.
struct Words {
  Words() {
    pruning = plan_pruning(graph, from_shorthand({.ratio = 0.5}), {});
    graph.source = source;
  }

  test::TextModel model{
      "g (int64[2,5] ids) => (float[2,5,60000] y) "
      "{ e = Gather(table, ids) h = MatMul(e, up) r = Relu(h) y = MatMul(r, head) }",
      {{"table", "300x48"}, {"up", "48x96"}, {"head", "96x60000"}}};
  Graph& graph = model.graph();
  Pruning pruning;
  std::shared_ptr<test::CountingSource> source = std::make_shared<test::CountingSource>();
};

bool every(const Weight&) { return true; }

double apart(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / a.abs().max()).item<double>();
}

TEST(Chunks, ComputeWhatTheWholeDoes) {
  const Words net;
  const auto inputs = to_tensors(runtime::random_inputs(net.graph, Probe{}, 1));
  EXPECT_LT(apart(plain_run(net.graph)(inputs)[0], plain_run(net.graph, every)(inputs)[0]), 1e-6);
}

TEST(Chunks, AreMaskedLikeTheWhole) {
  const Words net;
  ASSERT_FALSE(net.pruning.plan.empty());
  const auto inputs = to_tensors(runtime::random_inputs(net.graph, Probe{}, 1));
  const at::Tensor whole = masked_run(net.graph, net.pruning.plan)(inputs)[0];
  EXPECT_LT(apart(whole, masked_run(net.graph, net.pruning.plan, every)(inputs)[0]), 1e-6);
  EXPECT_GT(apart(whole, plain_run(net.graph)(inputs)[0]), 1e-2) << "nothing was masked";
}

TEST(Chunks, AreReadOnceForAllInputs) {
  Words net;
  TorchNetwork masked = masked_run(net.graph, net.pruning.plan, every);
  net.source->releases.clear();
  const Reference reference(net.graph, {}, {}, masked, {});
  EXPECT_EQ(net.source->releases.at("up"), 1);
  EXPECT_EQ(net.source->releases.at("head"), 3)
      << "48 rows of 60000, at most a million elements at once";
  EXPECT_EQ(net.source->releases.at("table"), ProofOptions{}.inputs) << "each its own words";
  GraphEditor small(net.graph, GraphEditor::Elements::kAll);
  replay(net.pruning.plan, small);
  TorchNetwork cut = plain_run(small.graph(), every);
  EXPECT_TRUE(reference.compare(cut).holds());
}

TEST(Chunks, IndicesCountFromTheEndAndStayInside) {
  const Words net;
  const auto run = [&](int64_t index, const TorchNetwork& computation) {
    return computation({at::full({2, 5}, index, at::kLong)})[0];
  };
  const TorchNetwork streamed = plain_run(net.graph, every);
  EXPECT_LT(apart(run(kWords - 3, plain_run(net.graph)), run(-3, streamed)), 1e-6);
  EXPECT_THROW(run(kWords, streamed), Error);
  EXPECT_THROW(run(-kWords - 1, streamed), Error);
}

TEST(Chunks, OfNoWords) {
  const Words net;
  const at::Tensor none = plain_run(net.graph, every)({at::zeros({0, 5}, at::kLong)})[0];
  EXPECT_EQ(none.sizes(), (at::IntArrayRef{0, 5, 60000}));
}

}  // namespace
}  // namespace parsimony::torch_io
