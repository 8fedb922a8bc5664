// Whole networks as ONNX: those of the examples, live and pruned, and other people's files.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <cstdlib>
#include <tuple>

#include "examples/models/resnet.h"
#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/torch_io/prune.h"
#include "parsimony/torch_io/script/script_file.h"
#include "tests/agreement/export_support.h"
#include "tests/agreement/networks.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

at::Tensor last_of(const at::Tensor& states) { return states; }
at::Tensor last_of(const std::tuple<at::Tensor, at::Tensor>& states) {
  return at::cat({std::get<0>(states), std::get<1>(states)});
}

class ExportNetworks : public testing::TestWithParam<const char*> {};

TEST_P(ExportNetworks, Agree) {
  const Network net = make_network(GetParam());
  const at::Tensor x = at::randn(net.input);
  const auto module = torch_io::traced(*net.module, net.forward, {x});
  expect_exported(module, {{net.input, {}}});
  if (net.name == "vit" || net.name == "lstm") {  // their traces write the batch down
    EXPECT_THROW(expect_exported(module, {{net.input, {}}}, {.dynamic_batch = true}),
                 UnsupportedError);
    return;
  }
  const Exported open = expect_exported(module, {{net.input, {}}}, {.dynamic_batch = true});
  EXPECT_NE(open.inputs.at(0).find("[batch, "), std::string::npos) << open.inputs[0];
  EXPECT_NE(open.outputs.at(0).find("[batch, "), std::string::npos) << open.outputs[0];
}

INSTANTIATE_TEST_SUITE_P(Examples, ExportNetworks,
                         testing::Values("cifar_cnn", "resnet18", "mobilenet_v2", "unet", "vit",
                                         "lstm"));

template <typename Layer>
void expect_layer_exported(Layer layer, const Shape& x) {
  const auto run = [layer](const std::vector<at::Tensor>& inputs) mutable {
    const auto [y, states] = layer->forward(inputs.at(0));
    return at::cat({y.flatten(), last_of(states).flatten()});
  };
  expect_exported(torch_io::traced(*layer, run, {at::randn(x)}), {{x, {}}});
}

TEST(Export, RecurrentLayersWithTheirLastStates) {
  using namespace torch::nn;
  torch::manual_seed(2);
  expect_layer_exported(LSTM(LSTMOptions(5, 4).num_layers(2).bidirectional(true)), {3, 2, 5});
  expect_layer_exported(LSTM(LSTMOptions(5, 4).batch_first(true).bias(false)), {3, 2, 5});
  expect_layer_exported(GRU(GRUOptions(5, 4).num_layers(2).bidirectional(true)), {3, 2, 5});
  expect_layer_exported(RNN(RNNOptions(5, 4).nonlinearity(torch::kReLU)), {3, 2, 5});
  expect_layer_exported(RNN(RNNOptions(5, 4).bidirectional(true)), {3, 2, 5});
}

TEST(Export, AnLstmThatIsGivenItsStates) {
  torch::jit::Module module("Net");
  torch::manual_seed(2);
  module.register_parameter("w_ih", at::randn({16, 5}), false);
  module.register_parameter("w_hh", at::randn({16, 4}), false);
  module.define(
      "def forward(self, x, h, c):\n    return torch.lstm(x, [h, c], [self.w_ih, self.w_hh], "
      "False, 1, 0.0, False, False, False)\n");
  const Exported made =
      expect_exported(module, {{{3, 2, 5}, {}}, {{1, 2, 4}, {}}, {{1, 2, 4}, {}}});
  EXPECT_EQ(made.outputs.size(), 3U);
}

TEST(Export, NativeAttentionKeepsItsWidths) {
  torch::jit::Module module("Net");
  for (const auto& [name, dims] : std::vector<std::pair<std::string, Shape>>{{"w_in", {8, 6}},
                                                                             {"w", {24, 8}},
                                                                             {"b", {24}},
                                                                             {"w_y", {8, 8}},
                                                                             {"b_y", {8}},
                                                                             {"w_out", {3, 8}}}) {
    module.register_parameter(name, at::randn(dims), false);
  }
  module.define(
      "def forward(self, x):\n    y = torch.linear(x, self.w_in)\n"
      "    z = torch._native_multi_head_attention(y, y, y, 8, 2, self.w, self.b, self.w_y, "
      "self.b_y,"
      " None, False)[0]\n    return torch.linear(z, self.w_out)\n");
  torch_io::ScriptGraph script = torch_io::read_script(module, {{{2, 5, 6}, {}}});
  const Pruning pruning = plan_pruning(script.graph, from_shorthand({.ratio = 0.5}));
  EXPECT_TRUE(pruning.plan.groups.empty());
  expect_exported(module, {{{2, 5, 6}, {}}});
}

TEST(Export, NamesOfResultsAreTheKeysOfADictionary) {
  torch::jit::Module module("Net");
  module.define(
      "def forward(self, x):\n    y = x * 2\n"
      "    return {'out': y, 'aux': (x + 1, [y])}\n");
  const Exported made = expect_exported(module, {{{2, 3}, {}}});
  EXPECT_EQ(made.outputs, (std::vector<std::string>{"out float32[2, 3]", "aux.0 float32[2, 3]",
                                                    "aux.1.0 float32[2, 3]"}));
}

TEST(Export, JoinedBatchNormsAreFewerNodes) {
  const Network net = make_network("resnet18");
  const auto module = torch_io::traced(*net.module, net.forward, {at::randn(net.input)});
  const Exported whole = expect_exported(module, {{net.input, {}}});
  const Exported joined = expect_exported(module, {{net.input, {}}}, {.fold_batchnorm = true});
  EXPECT_EQ(joined.nodes, whole.nodes - 20);
}

TEST(Export, ANumberThatSteersIsFixed) {
  torch::jit::Module module("Net");
  module.define(
      "def forward(self, x, rate: int):\n    if rate == 8:\n        return x\n"
      "    return x * rate\n");
  const Exported made = expect_exported(module, {{{2, 3}, {}}, {{}, 16}});
  EXPECT_EQ(made.inputs.size(), 1U);
  ASSERT_EQ(made.notes.size(), 1U);
  EXPECT_NE(made.notes[0].find("\"rate\" is fixed at 16"), std::string::npos) << made.notes[0];
}

TEST(Export, ABatchThatIsWrittenDownIsNotLeftOpen) {
  const auto module = expression("x.view(2, 12)");
  EXPECT_NO_THROW(expect_exported(module, {{{2, 3, 4}, {}}}));
  EXPECT_THROW(expect_exported(module, {{{2, 3, 4}, {}}}, {.dynamic_batch = true}),
               UnsupportedError);
}

TEST(Export, ALivePrunedModuleKeepsItsNames) {
  torch::manual_seed(1);
  examples::ResNet model(examples::ResNetOptions{.width = 8, .classes = 10});
  const at::Tensor example = torch::rand({1, 3, 32, 32});
  prune(model, example, from_shorthand({.criterion = "l2", .ratio = 0.5}));
  model->train();
  const TemporaryFolder folder;
  const Exported made = parsimony::export_onnx(model, example, folder / "small.onnx");
  EXPECT_TRUE(model->is_training());
  EXPECT_LE(made.proof.worst()->difference, 1e-4);
  EXPECT_EQ(made.outputs, (std::vector<std::string>{"output float32[1, 10]"}));
  EXPECT_EQ(onnx_io::ModelFile(folder / "small.onnx").opset(), onnx_io::kExportOpset);
}

struct File {
  const char* name;
  std::vector<InputSpec> inputs;
  const char* refusal = nullptr;
};

class ExportFiles : public testing::TestWithParam<File> {};

TEST_P(ExportFiles, AgreeOrSayWhyNot) {
  const char* data = std::getenv("PARSIMONY_TEST_DATA");
  if (data == nullptr || *data == '\0') GTEST_SKIP() << "no real models: set PARSIMONY_TEST_DATA";
  const File& one = GetParam();
  const torch_io::ScriptFile file(std::string(data) + "/models/torchscript/" + one.name);
  if (one.refusal == nullptr) {
    expect_exported(file.module(), one.inputs);
    return;
  }
  try {
    expect_exported(file.module(), one.inputs);
    ADD_FAILURE() << "was exported";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find(one.refusal), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    TorchScript, ExportFiles,
    testing::Values(File{"resnet20_cifar10.ts.pt", {{{1, 3, 32, 32}, {}}}},
                    File{"rl_sar_go2_himloco.pt", {{{3, 270}, {}}}},
                    File{"reddit.pt", {{{2, 20}, {}, DType::kInt64}}},
                    File{"unitree_g1_motion.pt", {{{1, 47}, {}}}, "helpers.py:175"},
                    File{"silero_vad.jit", {{{1, 512}, {}}, {{}, 16000}}, "prim::If"}));

}  // namespace
}  // namespace parsimony::test
