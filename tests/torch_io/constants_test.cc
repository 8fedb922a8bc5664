// The rebuilt network computes what the original does with zeros in its weights.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "parsimony/api/prune.h"
#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/observe.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

struct NamedWeight {
  const char* name;
  const char* dims;
  const char* kind = "";
};

/// A network of seeded weights, read from a file.
class Network {
 public:
  Network(const std::string& text, const std::vector<NamedWeight>& weights)
      : Network([&] {
          onnx::ModelProto model = model_of(text);
          for (const NamedWeight& w : weights) add_weight(model, w.name, w.dims, "float", w.kind);
          return model;
        }()) {}
  explicit Network(const onnx::ModelProto& model)
      : file_(written(folder_, model)), graph(onnx_io::to_graph(file_)) {}

 private:
  static std::string written(const TemporaryFolder& folder, const onnx::ModelProto& model) {
    write_file(folder / "model.onnx", model.SerializeAsString());
    return folder / "model.onnx";
  }

  TemporaryFolder folder_;
  onnx_io::ModelFile file_;

 public:
  Graph graph;
};

/// Zeros in whole rows of a tensor, along its first axis.
ElementMask rows(const Graph& graph, const std::string& tensor,
                 const std::vector<int64_t>& removed) {
  const auto weight = std::find_if(graph.weights.begin(), graph.weights.end(),
                                   [&](const Weight& w) { return w.name == tensor; });
  ElementMask mask{tensor, weight->dims, {}};
  mask.keep.assign(weight->count(), 1);
  const int64_t row = weight->count() / weight->dims[0];
  for (const int64_t r : removed) std::fill_n(mask.keep.begin() + r * row, row, uint8_t{0});
  return mask;
}

Pruning sped_up(Network& network, std::vector<ElementMask> masks) {
  PruneRequest request;
  PruneServices services;
  request.constants = Constants::kExact;
  request.masks = std::move(masks);
  services.observe = torch_io::observe;
  return plan_pruning(network.graph, request, services);
}

bool is_equal(const Network& network, const Pruning& pruning, const Plan& plan) {
  torch_io::TorchEngine engine;
  return !differs(network.graph, plan, pruning.analysis.probe, {}, engine);
}

/// Equal to the masked original; without the folds it would not be, unless there are none.
void expect_exact(const Network& network, const Pruning& pruning) {
  EXPECT_TRUE(is_equal(network, pruning, pruning.plan));
  if (pruning.plan.updates.empty()) return;
  Plan unfolded = pruning.plan;
  unfolded.updates.clear();
  EXPECT_FALSE(is_equal(network, pruning, unfolded));
}

std::string reason_of(const Plan& plan, const std::string& tensor) {
  for (const TensorUpdate& update : plan.updates) {
    if (update.tensor == tensor) return update.reason;
  }
  return "not folded";
}

std::string block(const std::string& middle, const std::string& pads) {
  return "net (float[1,3,8,8] x) => (float[1,4,H,W] y)\n"
         "{ a = Conv<pads=[1,1,1,1]>(x, W1, b1)\n"
         "  n = BatchNormalization(a, g, be, m, v)\n" +
         middle + "  y = Conv<pads=" + pads + ">(r, W2, b2) }";
}

const std::vector<NamedWeight> kBlock = {{"W1", "8x3x3x3"}, {"b1", "8"}, {"g", "8"},
                                         {"be", "8"},       {"m", "8"},  {"v", "8", "positive"},
                                         {"W2", "4x8x3x3"}, {"b2", "4"}};

int kept(const Pruning& pruning, int group) {
  return pruning.allocation.masks.kept(GroupId(group));
}

TEST(Constants, GoIntoTheBiasWhereNothingIsPadded) {
  for (const std::string activation : {"Sigmoid", "HardSwish", "Relu", "Tanh", "Identity"}) {
    Network network(block("  r = " + activation + "(n)\n", "[0,0,0,0]"), kBlock);
    const Pruning pruning = sped_up(network, {rows(network.graph, "W1", {1, 2, 6})});
    EXPECT_EQ(kept(pruning, 0), 5) << activation;
    EXPECT_EQ(pruning.absorbers, 0);
    expect_exact(network, pruning);
    EXPECT_EQ(reason_of(pruning.plan, "W2"), "not folded");
    EXPECT_TRUE(reason_of(pruning.plan, "b2").starts_with("takes the constants")) << activation;
  }
}

TEST(Constants, AreCarriedByAChannelWherePaddingBreaksTheBias) {
  Network network(block("  r = Sigmoid(n)\n", "[1,1,1,1]"), kBlock);
  const Pruning pruning = sped_up(network, {rows(network.graph, "W1", {1, 2, 6})});
  EXPECT_EQ(kept(pruning, 0), 6);  // one of the three carries
  EXPECT_EQ(pruning.absorbers, 1);
  expect_exact(network, pruning);
  EXPECT_EQ(reason_of(pruning.plan, "b2"), "not folded");
}

TEST(Constants, ThatAreZeroNeedNoFolds) {
  Network network(
      "net (float[1,3,8,8] x) => (float[1,4,8,8] y)\n"
      "{ a = Conv<pads=[1,1,1,1]>(x, W1)\n r = Relu(a)\n y = Conv<pads=[1,1,1,1]>(r, W2) }",
      {{"W1", "8x3x3x3"}, {"W2", "4x8x3x3"}});
  PruneRequest request;
  request.constants = Constants::kExact;
  request.masks = {rows(network.graph, "W1", {0, 7})};
  const Pruning pruning = plan_pruning(network.graph, request);  // nothing is run
  EXPECT_EQ(kept(pruning, 0), 6);
  EXPECT_TRUE(pruning.plan.updates.empty());
  EXPECT_TRUE(is_equal(network, pruning, pruning.plan));
}

TEST(Constants, PassADepthwiseConvolutionThatIsMaskedToo) {
  const std::string middle = "  s = Sigmoid(n)\n  r = Conv<group=8, pads=[1,1,1,1]>(s, D, d)\n";
  std::vector<NamedWeight> weights = kBlock;
  weights.push_back({"D", "8x1x3x3"});
  weights.push_back({"d", "8"});
  Network network(block(middle, "[1,1,1,1]"), weights);
  const Pruning both =
      sped_up(network, {rows(network.graph, "W1", {1, 2, 6}), rows(network.graph, "D", {1, 2, 6})});
  EXPECT_EQ(kept(both, 0), 6);
  EXPECT_EQ(both.absorbers, 1);
  expect_exact(network, both);
  // A constant that a padded kernel turns into another at every border stays where it is.
  const Pruning first = sped_up(network, {rows(network.graph, "W1", {1, 2, 6})});
  EXPECT_EQ(kept(first, 0), 8);
  EXPECT_FALSE(first.notes.empty());
  expect_exact(network, first);
}

TEST(Constants, OfAnAverageThatCountsItsPaddingStay) {
  Network network(block("  s = Sigmoid(n)\n  r = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], "
                        "count_include_pad=1>(s)\n",
                        "[0,0,0,0]"),
                  kBlock);
  const Pruning pruning = sped_up(network, {rows(network.graph, "W1", {3})});
  EXPECT_EQ(kept(pruning, 0), 8);
  expect_exact(network, pruning);
}

TEST(Constants, OfAResidualSumGoOnlyIfBothSidesAreMasked) {
  const std::string text =
      "net (float[1,3,8,8] x) => (float[1,4,8,8] y)\n"
      "{ a = Conv<pads=[1,1,1,1]>(x, W1, b1)\n n = BatchNormalization(a, g, be, m, v)\n"
      "  c = Conv<pads=[1,1,1,1]>(n, W3, b3)\n s = Add(c, n)\n r = Sigmoid(s)\n"
      "  y = Conv<pads=[1,1,1,1]>(r, W2, b2) }";
  std::vector<NamedWeight> weights = kBlock;
  weights.push_back({"W3", "8x8x3x3"});
  weights.push_back({"b3", "8"});
  Network network(text, weights);
  const Pruning one = sped_up(network, {rows(network.graph, "W1", {1, 2, 6})});
  EXPECT_EQ(kept(one, 0), 8);
  expect_exact(network, one);
  const Pruning both = sped_up(
      network, {rows(network.graph, "W1", {1, 2, 6}), rows(network.graph, "W3", {1, 2, 5})});
  EXPECT_EQ(kept(both, 0), 7);  // of 1 and 2 one carries for both of their readers
  EXPECT_EQ(both.absorbers, 1);
  expect_exact(network, both);
  for (const MaskOutcome& mask : both.masked)
    EXPECT_GT(mask.zeros - mask.removed, 0) << mask.tensor;
}

TEST(Constants, OfConcatenatedBranchesShareACarrier) {
  Network network(
      "net (float[1,3,8,8] x) => (float[1,4,8,8] y)\n"
      "{ a = Conv<pads=[1,1,1,1]>(x, W1, b1)\n c = Conv<pads=[1,1,1,1]>(x, W3, b3)\n"
      "  k = Concat<axis=1>(a, c)\n r = Sigmoid(k)\n y = Conv<pads=[1,1,1,1]>(r, W2) }",
      {{"W1", "8x3x3x3"}, {"b1", "8"}, {"W3", "6x3x3x3"}, {"b3", "6"}, {"W2", "4x14x3x3"}});
  const Pruning pruning =
      sped_up(network, {rows(network.graph, "W1", {0, 1, 2}), rows(network.graph, "W3", {4, 5})});
  EXPECT_EQ(kept(pruning, 0) + kept(pruning, 1), 10);
  EXPECT_EQ(pruning.absorbers, 1);
  expect_exact(network, pruning);
}

TEST(Constants, ReachALinearLayerBehindAFlatten) {
  Network network(
      "net (float[1,3,4,4] x) => (float[1,5] y)\n"
      "{ a = Conv<pads=[1,1,1,1]>(x, W1, b1)\n s = Sigmoid(a)\n"
      "  p = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(s)\n"
      "  f = Flatten(p)\n y = Gemm<transB=1, alpha=0.5>(f, W2, b2) }",
      {{"W1", "6x3x3x3"}, {"b1", "6"}, {"W2", "5x96"}, {"b2", "5"}});
  const Pruning pruning = sped_up(network, {rows(network.graph, "W1", {0, 3, 4})});
  EXPECT_EQ(kept(pruning, 0), 3);  // each place has a constant of its own
  expect_exact(network, pruning);
}

TEST(Constants, WithoutABiasAreCarried) {
  Network network(
      "net (float[2,6] x) => (float[2,4] y)\n"
      "{ a = MatMul(x, W1)\n h = Add(a, b1)\n s = Sigmoid(h)\n y = MatMul(s, W2) }",
      {{"W1", "6x8"}, {"b1", "8"}, {"W2", "8x4"}});
  ElementMask columns{"W1", {6, 8}, std::vector<uint8_t>(48, 1)};
  for (size_t i = 0; i < 48; ++i) columns.keep[i] = i % 8 == 2 || i % 8 == 5 ? 0 : 1;
  const Pruning pruning = sped_up(network, {columns});
  EXPECT_EQ(kept(pruning, 0), 7);
  EXPECT_EQ(pruning.absorbers, 1);
  expect_exact(network, pruning);
}

TEST(Constants, OfGroupsThatMixStay) {
  Network network(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "net (float[2,6] x) => (float[2,4] y)\n"
      "{ a = MatMul(x, W1)\n n = LayerNormalization(a, g, b)\n y = MatMul(n, W2) }",
      {{"W1", "6x8"}, {"g", "8"}, {"b", "8"}, {"W2", "8x4"}});
  ElementMask columns{"W1", {6, 8}, std::vector<uint8_t>(48, 1)};
  for (size_t i = 0; i < 48; ++i) columns.keep[i] = i % 8 == 2 ? 0 : 1;
  const Pruning pruning = sped_up(network, {columns});
  EXPECT_EQ(kept(pruning, 0), 8);
  expect_exact(network, pruning);
}

/// Log(0) and its like leave no original to be equal to.
bool is_finite(const Network& network, const Pruning& pruning) {
  const Probe& probe = pruning.analysis.probe;
  const auto inputs =
      torch_io::to_tensors(runtime::random_inputs(network.graph, probe, 1, {.below = 2}));
  const auto outputs = torch_io::masked_run(network.graph, pruning.plan)(inputs);
  return std::all_of(outputs.begin(), outputs.end(), [](const at::Tensor& output) {
    return !output.is_floating_point() || output.isfinite().all().item<bool>();
  });
}

TEST(Constants, AreSafeForEveryOperator) {
  int removed = 0;
  int folded = 0;
  int infinite = 0;
  for (const Fixture& fixture : all_fixtures()) {
    SCOPED_TRACE(fixture.name);
    Network network(fixture.model);
    PruneRequest request;
    PruneServices services;
    for (const std::string& spec : fixture.inputs) request.inputs.push_back(parse_input_spec(spec));
    request.constants = Constants::kExact;
    services.observe = torch_io::observe;
    ConfigList config = from_shorthand({.criterion = "l1", .ratio = 0.5});
    Pruning pruning;
    try {
      request.config = config;
      pruning = plan_pruning(network.graph, request, services);
      if (pruning.plan.empty()) continue;
      if (!is_finite(network, pruning)) {
        ++infinite;
        continue;
      }
      EXPECT_TRUE(is_equal(network, pruning, pruning.plan));
    } catch (const ModelError&) {
      continue;  // random indices leave a table
    } catch (const UnsupportedError&) {
      continue;  // not run by the executor
    }
    removed += pruning.plan.groups.empty() ? 0 : 1;
    folded += pruning.plan.updates.empty() ? 0 : 1;
  }
  EXPECT_LT(infinite, 12);
  EXPECT_GT(removed, 100);
  EXPECT_GT(folded, 30);
}

}  // namespace
}  // namespace parsimony::test
