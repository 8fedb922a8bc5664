#include "parsimony/torch_io/network.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>

#include "parsimony/api/prune.h"
#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/script/run.h"
#include "tests/support/counting_source.h"
#include "tests/support/fixture.h"

namespace parsimony::torch_io {
namespace {

/// A network of one input [2, 3] and one output "y".
Graph network(DType type = DType::kFloat32) {
  Graph graph;
  Value x;
  x.name = "x";
  x.dtype = type;
  x.declared = Shape{2, 3};
  x.is_input = true;
  Value y = x;
  y.name = "y";
  y.is_input = false;
  y.is_output = true;
  y.producer = NodeId(0);
  graph.values = {x, y};
  graph.nodes = {{"", "Relu", "", 13, {ValueId(0)}, {ValueId(1)}, {}, false, {}}};
  graph.inputs = {ValueId(0)};
  graph.outputs = {ValueId(1)};
  finish(graph);
  return graph;
}

TorchNetwork each(std::function<at::Tensor(const at::Tensor&)> what) {
  return [what = std::move(what)](const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{what(inputs.at(0))};
  };
}

Proof compare(TorchNetwork original, TorchNetwork small) {
  const Reference reference(network(), {}, {}, original, {});
  Proof proof = reference.compare(small);
  reference.widen_tolerance(proof, original);
  return proof;
}

const TorchNetwork kTwice = each([](const at::Tensor& x) { return 2 * x; });

/// x · w0 … w11, divided by the mean magnitude in between: in float32 and back, as norms are
/// exported.
onnx::ModelProto half_model(int width) {
  std::string text = "g (float16[4," + std::to_string(width) + "] x) => (float16[4," +
                     std::to_string(width) + "] y) { ";
  constexpr int kLayers = 12;
  std::string from = "x";
  for (int i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    const std::string to = i + 1 == kLayers ? "y" : "m" + n;
    text += to + " = MatMul(" + from + ", w" + n + ") ";
    if (i + 1 < kLayers) {
      text += "f" + n + " = Cast<to = 1>(m" + n + ") a" + n + " = Abs(f" + n + ") n" + n +
              " = ReduceMean<axes = [1]>(a" + n + ") d" + n + " = Div(f" + n + ", n" + n + ") h" +
              n + " = Cast<to = 10>(d" + n + ") ";
    }
    from = "h" + n;
  }
  onnx::ModelProto model = test::model_of(text + "}");
  const std::string dims = std::to_string(width) + "x" + std::to_string(width);
  for (int i = 0; i < kLayers; ++i) {
    test::add_weight(model, "w" + std::to_string(i), dims, "float16");
  }
  return model;
}

/// `half_model` in which every sum has one term, so that its order does not matter: even columns
/// hold a 2 and odd ones a 1, in rows that are even or odd like them.
onnx::ModelProto exact_half_model(int width) {
  constexpr uint16_t kOne = 0x3C00;
  constexpr uint16_t kTwo = 0x4000;
  onnx::ModelProto model = half_model(width);
  int shift = 0;
  for (onnx::TensorProto& weight : *model.mutable_graph()->mutable_initializer()) {
    shift += 2;
    std::vector<uint16_t> values(static_cast<size_t>(width) * width, 0);
    for (int column = 0; column < width; ++column) {
      const int row = (column + shift) % width;
      values[row * width + column] = column % 2 == 0 ? kTwo : kOne;
    }
    weight.clear_int32_data();
    weight.set_raw_data(values.data(), values.size() * sizeof(uint16_t));
  }
  return model;
}

/// A model of halves read from its file, and a plan for half of its channels.
class HalfPruned {
 public:
  explicit HalfPruned(const onnx::ModelProto& model) {
    std::ofstream out(folder_ / "half.onnx", std::ios::binary);
    model.SerializeToOstream(&out);
    out.close();
    file_.emplace(folder_ / "half.onnx");
    graph = onnx_io::to_graph(*file_);
    pruning = plan_pruning(graph, from_shorthand({.ratio = 0.5}), {});
  }

  Graph graph;
  Pruning pruning;

 private:
  const test::TemporaryFolder folder_;
  std::optional<onnx_io::ModelFile> file_;
};

TEST(Reference, AllowsWhatTheLastBitOfAnInputChanges) {
  // No kernel has an alternative that would show it.
  const auto steep = [](double factor, double wrong) {
    return each([=](const at::Tensor& x) { return at::sin(x * factor * 1e4) * wrong; });
  };
  const Proof rounded = compare(steep(1, 1), steep(1 + 1.2e-7, 1));
  EXPECT_TRUE(rounded.holds());
  EXPECT_GT(rounded.outputs[0].difference, 1e-4);
  EXPECT_LT(rounded.outputs[0].tolerance, 1e-2);
  EXPECT_FALSE(compare(steep(1, 1), steep(1, 1.02)).holds());
}

TEST(Prove, MeasuresTheDifferenceAgainstTheLargestElement) {
  const Proof same = compare(kTwice, kTwice);
  EXPECT_TRUE(same.holds());
  EXPECT_EQ(same.worst()->name, "y");
  EXPECT_EQ(same.inputs, 3);
  const Proof off = compare(kTwice, each([](const at::Tensor& x) { return 2.5 * x; }));
  EXPECT_FALSE(off.holds());
  EXPECT_NEAR(off.worst()->difference, 0.25, 1e-6);
}

TEST(Prove, AnotherShapeDiffersInfinitely) {
  const Proof proof = compare(kTwice, each([](const at::Tensor& x) { return 2 * x.flatten(); }));
  EXPECT_FALSE(proof.holds());
  EXPECT_TRUE(std::isinf(proof.worst()->difference));
}

TEST(Prove, NaNAgreesWithNothing) {
  const TorchNetwork nan = each([](const at::Tensor& x) {
    return at::full_like(x, std::numeric_limits<double>::quiet_NaN());
  });
  EXPECT_FALSE(compare(kTwice, nan).holds());
  EXPECT_THROW(compare(nan, nan), UnsupportedError) << "it would agree with every fault";
}

TEST(Prove, InfinitiesThatAreTheSameAgree) {
  const TorchNetwork masked = each([](const at::Tensor& x) {
    return at::where(x > 0, x, at::full_like(x, -std::numeric_limits<double>::infinity()));
  });
  EXPECT_TRUE(compare(masked, masked).holds());
  EXPECT_FALSE(compare(masked, kTwice).holds());
}

TEST(Prove, WhatDoesNotRunDiffers) {
  const Proof proof = compare(kTwice, each([](const at::Tensor& x) { return x.view({7}); }));
  EXPECT_FALSE(proof.holds());
  ASSERT_FALSE(proof.notes.empty());
  EXPECT_NE(proof.notes.front().find("does not run"), std::string::npos);
}

TEST(Prove, SaysWhereAgreementProvesLittle) {
  const TorchNetwork constant = each([](const at::Tensor& x) { return at::ones_like(x); });
  const Proof proof = compare(constant, constant);
  ASSERT_EQ(proof.notes.size(), 1U);
  EXPECT_NE(proof.notes.front().find("hardly depends on the input"), std::string::npos);
}

TEST(Prove, AnOriginalThatDoesNotRunIsUnsupported) {
  TorchNetwork broken = each([](const at::Tensor& x) { return x.view({7}); });
  EXPECT_THROW(Reference(network(), {}, {}, broken, {}), UnsupportedError);
}

/// What gives no numbers agrees with anything, or with nothing.
TEST(Prove, TriesOtherInputsWhereTheOriginalGivesNoNumbers) {
  const TorchNetwork root = each([](const at::Tensor& x) { return at::sqrt(x); });
  const Proof proof = compare(root, root);
  EXPECT_TRUE(proof.holds());
  ASSERT_EQ(proof.notes.size(), 1U);
  EXPECT_NE(proof.notes.front().find("between 0 and 1"), std::string::npos);

  for (const double number : {std::nan(""), HUGE_VAL}) {
    TorchNetwork none = each([=](const at::Tensor& x) { return at::full_like(x, number); });
    EXPECT_THROW(Reference(network(), {}, {}, none, {}), UnsupportedError);
  }
}

/// Wide enough that rounding after each node would exceed the tolerance.
TEST(Prove, HalvesAreHeldToTheUsualTolerance) {
  HalfPruned net(half_model(384));
  const Graph& graph = net.graph;
  const Pruning& pruning = net.pruning;
  ASSERT_FALSE(pruning.plan.empty());
  TorchNetwork masked = masked_run(graph, pruning.plan);
  const Reference reference(graph, pruning.analysis.probe, {}, masked, {});
  GraphEditor small(graph, GraphEditor::Elements::kAll);
  replay(pruning.plan, small);
  TorchNetwork right = plain_run(small.graph());
  const Proof proof = reference.compare(right);
  EXPECT_TRUE(proof.holds()) << proof.worst()->difference << " of " << proof.worst()->tolerance;
  EXPECT_EQ(proof.worst()->tolerance, ProofOptions{}.tolerance);
  TorchNetwork wrong = [&](const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{1.05 * right(inputs).at(0)};
  };
  EXPECT_FALSE(reference.compare(wrong).holds());
}

TEST(Prove, WeightsThatAreReadAnewComputeTheSame) {
  HalfPruned net(exact_half_model(24));
  const Graph& graph = net.graph;
  const Pruning& pruning = net.pruning;
  int asked = 0;
  const auto source = std::make_shared<test::CountingSource>();
  net.graph.source = source;
  const auto every = [&](const Weight&) { return ++asked > 0; };
  const auto inputs = to_tensors(runtime::random_inputs(graph, Probe{}, 1));
  EXPECT_TRUE(at::equal(plain_run(graph)(inputs).at(0), plain_run(graph, every)(inputs).at(0)));
  const TorchNetwork streamed = masked_run(graph, pruning.plan, every);
  const at::Tensor requested = masked_run(graph, pruning.plan)(inputs).at(0);
  EXPECT_GT(requested.abs().max().item<float>(), 0);
  EXPECT_TRUE(at::equal(requested, streamed(inputs).at(0)));
  const int held = source->count();
  streamed(inputs);
  EXPECT_EQ(source->count() - held, 12) << "every weight is read again in every run";
  EXPECT_GE(asked, 24);
}

TEST(Network, CopiesBothWays) {
  const TensorBytes input{"x", DType::kInt16, {2, 1}, {std::byte{1}, {}, std::byte{2}, {}}};
  const auto tensors = to_tensors({input});
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_TRUE(tensors[0].equal(at::tensor({1, 2}, at::kShort).reshape({2, 1})));
  TorchNetwork network = [](const TorchNetwork::List& inputs) {
    return TorchNetwork::List{inputs[0].expand({2, 2}), at::zeros({0, 3})};
  };
  network.bind({input});
  EXPECT_TRUE(network.outputs().empty()) << "nothing was computed";
  network.compute();
  const TensorList outputs = network.outputs();
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].dtype, DType::kInt16);
  EXPECT_EQ(outputs[0].dims, (Shape{2, 2}));
  const int16_t requested[] = {1, 1, 2, 2};
  ASSERT_EQ(outputs[0].bytes.size(), sizeof requested);
  EXPECT_EQ(std::memcmp(outputs[0].bytes.data(), requested, sizeof requested), 0);
  EXPECT_EQ(outputs[1].dims, (Shape{0, 3}));
  EXPECT_EQ(network.run({{input}}).at(0).at(0).bytes, outputs[0].bytes);
  EXPECT_THROW(to_tensors({{"x", DType::kString, {1}, {}}}), UnsupportedError);
}

/// Counts its calls in a buffer and, in training, answers otherwise.
torch::jit::Module counting() {
  torch::jit::Module module("Net");
  module.register_buffer("calls", at::zeros({}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
    def forward(self, x, times: int):
        self.calls.add_(1)
        if self.training:
            return -x
        return x * times + self.calls
  )");
  return module;
}

TEST(Network, OfAScriptThatIsTimedGoesOnFromItsOwnState) {
  const torch::jit::Module module = counting();
  ASSERT_TRUE(module.is_training());
  const std::vector<at::Tensor> inputs = {at::full({2}, 10), at::tensor(3)};
  const at::Tensor calls = module.attr("calls").toTensor();
  {
    const auto compute = bound_script(module, inputs);
    EXPECT_EQ(compute()[0][0].item<double>(), 31);
    EXPECT_EQ(compute()[0][0].item<double>(), 32);
  }
  EXPECT_TRUE(module.is_training());
  EXPECT_EQ(calls.item<double>(), 0);
  EXPECT_EQ(script_run(module)(inputs)[0][0].item<double>(), 31);
}

TEST(TorchEngine, HasKernelsForMatricesStoredByColumns) {
  const TorchEngine engine;
  const std::vector<double> row = {1, 2};
  const std::vector<double> two = {3, 4, 5, 6};
  std::vector<double> product(2);
  ASSERT_TRUE(engine.multiply(1, 2, 2, row.data(), two.data(), product.data()));
  EXPECT_EQ(product, (std::vector<double>{11, 17}));
  const std::vector<double> a = {4, 1, 1, 3};
  std::vector<double> b = {6, 7, 4, 1, 8, 2};  // of x = (1, 2), (1, 0), (2, 0)
  ASSERT_TRUE(engine.solve(2, a.data(), 3, b.data()));
  const std::vector<double> expected = {1, 2, 1, 0, 2, 0};
  for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(b[i], expected[i], 1e-12) << i;
  const std::vector<double> indefinite = {1, 2, 2, 1};
  EXPECT_FALSE(engine.solve(2, indefinite.data(), 3, b.data()));
  EXPECT_NEAR(b[1], 2, 1e-12) << "unchanged";
}

}  // namespace
}  // namespace parsimony::torch_io
