// GraphModule as a module: its parameters, its modes, its refusals.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/executor/operators_impl.h"
#include "parsimony/torch_io/executor/program_impl.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

struct Weighted {
  const char* name;
  const char* dims;
  const char* kind = "";
};

GraphModule module_of(const std::string& text, const std::vector<Weighted>& weights) {
  onnx::ModelProto model = model_of(text);
  for (const Weighted& weight : weights) {
    add_weight(model, weight.name, weight.dims, "float", weight.kind);
  }
  const TemporaryFolder folder;
  write_file(folder / "model.onnx", model.SerializeAsString());
  const onnx_io::ModelFile file(folder / "model.onnx");
  return GraphModule(onnx_io::to_graph(file));
}

/// y = Gemm(Relu(BatchNormalization(Conv(x)))) over four classes.
GraphModule classifier() {
  return module_of(R"(
      net (float[N,3,8,8] x) => (float[N,4] y)
      {
        a = Conv<pads=[1,1,1,1]>(x, W1)
        b = BatchNormalization<momentum=0.8>(a, gamma, beta, mean, var)
        c = Relu(b)
        d = GlobalAveragePool(c)
        e = Flatten(d)
        y = Gemm<transB=1>(e, W2)
      })",
                   {{"W1", "6x3x3x3"},
                    {"gamma", "6", "ones"},
                    {"beta", "6"},
                    {"mean", "6"},
                    {"var", "6", "positive"},
                    {"W2", "4x6"}});
}

TEST(GraphModule, ItsWeightsAreParametersAndItsStatisticsBuffers) {
  GraphModule net = classifier();
  EXPECT_EQ(net->parameters().size(), 4);
  EXPECT_EQ(net->buffers().size(), 2);
  EXPECT_EQ(net->weights().size(), 6);
  EXPECT_TRUE(net->weights().at("W1").is_same(net->named_parameters()["W1"]));
  EXPECT_FALSE(net->is_training());
}

TEST(GraphModule, AStepDownhillLowersTheLoss) {
  GraphModule net = classifier();
  at::manual_seed(1);
  const at::Tensor x = at::randn({8, 3, 8, 8});
  const at::Tensor labels = at::randint(4, {8}, at::kLong);
  const auto loss = [&] {
    return -at::log_softmax(net->forward(x), 1).gather(1, labels.unsqueeze(1)).mean();
  };
  const at::Tensor before = loss();
  before.backward();
  {
    const at::NoGradGuard guard;
    for (at::Tensor& p : net->parameters()) {
      ASSERT_TRUE(p.grad().defined());
      p.sub_(p.grad() * 0.1);
    }
  }
  EXPECT_LT(loss().item<double>(), before.item<double>());
}

TEST(GraphModule, TrainingMovesTheStatisticsByTheMomentum) {
  GraphModule net = classifier();
  const at::Tensor mean = net->weights().at("mean").clone();
  const at::Tensor x = at::randn({8, 3, 8, 8});
  net->forward(x);
  EXPECT_TRUE(at::equal(net->weights().at("mean"), mean));
  net->train();
  net->forward(x);
  const at::Tensor a = at::conv2d(x, net->weights().at("W1"), {}, 1, 1);
  EXPECT_TRUE(
      at::allclose(net->weights().at("mean"), mean * 0.8 + a.mean({0, 2, 3}) * 0.2, 1e-4, 1e-6));
}

/// ONNX divides by n, where libtorch's own module would by n - 1.
TEST(GraphModule, TheVarianceThatTrainingLeavesIsThatOfTheBatch) {
  GraphModule net = classifier();
  const at::Tensor variance = net->weights().at("var").clone();
  const at::Tensor x = at::randn({2, 3, 8, 8});
  net->train();
  net->forward(x);
  const at::Tensor a = at::conv2d(x, net->weights().at("W1"), {}, 1, 1);
  const at::Tensor of_batch = at::var(a, {0, 2, 3}, /*unbiased=*/false);
  EXPECT_TRUE(at::allclose(net->weights().at("var"), variance * 0.8 + of_batch * 0.2, 1e-4, 1e-6));
}

TEST(GraphModule, DropoutDropsInTrainingOnly) {
  GraphModule net = module_of(
      R"(net (float[100] x) => (float[100] y)
      <float ratio = {0.5}>
      {
        y = Dropout(x, ratio)
      })",
      {});
  const at::Tensor x = at::ones({100});
  EXPECT_TRUE(at::equal(net->forward(x), x));
  net->train();
  EXPECT_TRUE(at::any(net->forward(x) == 0).item<bool>());
}

TEST(GraphModule, AnObserverSeesEveryValue) {
  GraphModule net = classifier();
  std::vector<std::string> seen;
  net->observe([&](const Node& node, ValueId, const at::Tensor& t) {
    EXPECT_TRUE(t.defined());
    seen.push_back(node.op);
  });
  net->forward(at::rand({1, 3, 8, 8}));
  EXPECT_EQ(seen, (std::vector<std::string>{"Conv", "BatchNormalization", "Relu",
                                            "GlobalAveragePool", "Flatten", "Gemm"}));
}

TEST(GraphModule, SaysWhichNodeItCannotRun) {
  try {
    module_of("net (float[4] x) => (float[4] y) { y = Frobnicate(x) }", {});
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("Frobnicate"), std::string::npos) << error.what();
  }
}

TEST(GraphModule, SaysWhichNodeAnInputDoesNotFit) {
  GraphModule net = classifier();
  try {
    net->forward(at::rand({1, 4, 8, 8}));
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_NE(std::string(error.what()).find("Conv"), std::string::npos) << error.what();
  }
  EXPECT_THROW(net->forward(std::vector<at::Tensor>{}), ModelError);
}

TEST(GraphModule, AnotherPrecisionLeavesIntegersAlone) {
  GraphModule net = module_of(
      R"(net (float[2,6] x) => (float[3,4] y)
      <int64[2] s = {3, 4}>
      {
        y = Reshape(x, s)
      })",
      {});
  net->to(at::kDouble);
  const at::Tensor y = net->forward(at::rand({2, 6}, at::kDouble));
  EXPECT_EQ(y.scalar_type(), at::kDouble);
  EXPECT_EQ(net->weights().at("s").scalar_type(), at::kLong);
}

TEST(GraphModule, KnowsEveryOperatorThatTheAnalysisKnows) {
  for (const OpSchema& rule : operator_table()) {
    if (!rule.is_followed() || rule.has(kDraws)) continue;
    Node node;
    node.op = rule.op;
    node.domain = rule.domain;
    node.opset = 13;
    node.bodies = {BodyId(0)};
    const bool known =
        executor::is_control(node) || executor::find_operator(rule.domain, rule.op) != nullptr;
    EXPECT_TRUE(known) << rule.op;
  }
}

/// Two gates, of which one is read twice, and two pointwise convolutions.
const char* const kGates = R"(
    net (float[1,3,6,6] x) => (float[1,4,6,6] y)
    {
      a = Conv(x, W1, B1)
      s = Sigmoid(a)
      b = Mul(s, a)
      c = Conv(b, W2)
      t = Sigmoid(c)
      d = Mul(c, t)
      y = Add(d, t)
    })";

TEST(GraphModule, FusedItHasTheSameValuesAndGradients) {
  onnx::ModelProto model = model_of(kGates);
  add_weight(model, "W1", "5x3x1x1");
  add_weight(model, "B1", "5");
  add_weight(model, "W2", "4x5x1x1");
  const TemporaryFolder folder;
  write_file(folder / "model.onnx", model.SerializeAsString());
  const onnx_io::ModelFile file(folder / "model.onnx");
  const Graph graph = onnx_io::to_graph(file);
  GraphModule plain(graph);
  GraphModule fused(graph, GraphModuleOptions{.fuses = true});
  std::vector<std::string> operators;
  fused->observe(
      [&](const Node& node, ValueId, const at::Tensor&) { operators.push_back(node.op); });
  at::manual_seed(1);
  const at::Tensor x = at::randn({1, 3, 6, 6});
  const at::Tensor y = fused->forward(x);
  EXPECT_EQ(operators,
            (std::vector<std::string>{"Conv", "Swish", "Conv", "Sigmoid", "Mul", "Add"}));
  EXPECT_TRUE(at::allclose(y, plain->forward(x), 1e-5, 1e-6));
  y.square().sum().backward();
  plain->forward(x).square().sum().backward();
  for (const auto& [name, weight] : plain->weights()) {
    EXPECT_TRUE(at::allclose(fused->weights().at(name).grad(), weight.grad(), 1e-4, 1e-5)) << name;
  }
}

/// One sample takes another way through a pointwise convolution than several.
TEST(GraphModule, OneSampleHasTheGradientsOfSeveral) {
  GraphModule net = module_of("net (float[N,3,4,4] x) => (float[N,5,4,4] y) { y = Conv(x, W, B) }",
                              {{"W", "5x3x1x1"}, {"B", "5"}});
  at::manual_seed(1);
  const at::Tensor x = at::randn({2, 3, 4, 4});
  net->forward(x).square().sum().backward();
  std::vector<at::Tensor> requested;
  for (at::Tensor parameter : net->parameters()) {
    requested.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  for (int64_t i = 0; i < 2; ++i) net->forward(x.narrow(0, i, 1)).square().sum().backward();
  for (size_t p = 0; p < requested.size(); ++p) {
    EXPECT_TRUE(at::allclose(net->parameters()[p].grad(), requested[p], 1e-4, 1e-5));
  }
}

}  // namespace
}  // namespace parsimony::test
