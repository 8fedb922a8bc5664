// Networks of torch::nn modules, traced: read, pruned, edited, saved, loaded and compared.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include "parsimony/torch_io/mirror.h"
#include "parsimony/torch_io/script/read.h"
#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

namespace nn = torch::nn;
using at::Tensor;

/// Modules by name and a function of the input.
struct Net : nn::Module {
  template <typename M>
  M add(const std::string& name, M module) {
    return register_module(name, module);
  }
  Tensor add_parameter(const std::string& name, const at::IntArrayRef& sizes) {
    return register_parameter(name, at::randn(sizes) * 0.5);
  }
  std::function<Tensor(const Tensor&)> compute;
};

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel = 3, int64_t groups = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2).groups(groups));
}

void randomise(nn::Module& net) {
  const at::NoGradGuard no_grad;
  for (auto& buffer : net.named_buffers()) {
    if (buffer.key().ends_with("running_mean")) buffer.value().normal_();
    if (buffer.key().ends_with("running_var")) buffer.value().uniform_(0.5, 2);
  }
  for (auto& parameter : net.named_parameters()) {
    if (parameter.value().dim() == 1) parameter.value().normal_();
  }
}

torch::jit::Module traced(Net& net, const Tensor& x) {
  randomise(net);
  return torch_io::traced(
      net, [&](const std::vector<Tensor>& inputs) { return net.compute(inputs.at(0)); }, {x});
}

/// Pruned to half, with `groups` groups, and exact.
Pruned expect_exact(Net& net, const Tensor& x, size_t groups, const ScriptRequest& request = {}) {
  Pruned pruned = prune(traced(net, x), {x}, request);
  EXPECT_EQ(pruned.pruning.plan.groups.size(), groups) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-4) << pruned.dump;
  EXPECT_LE(pruned.misread.value_or(1), 1e-4) << pruned.dump;
  return pruned;
}

TEST(ScriptNets, Cnn) {
  Net net;
  auto conv1 = net.add("conv1", conv(3, 8));
  auto bn1 = net.add("bn1", nn::BatchNorm2d(8));
  auto conv2 = net.add("conv2", conv(8, 12));
  auto fc1 = net.add("fc1", nn::Linear(12 * 4 * 4, 20));
  auto fc2 = net.add("fc2", nn::Linear(20, 5));
  net.compute = [=](Tensor x) mutable {
    x = at::max_pool2d(bn1(conv1(x)).relu(), 2);
    x = at::avg_pool2d(conv2(x).relu_(), 2).flatten(1);
    return fc2(at::dropout(fc1(x).relu(), 0.5, false)).log_softmax(1);
  };
  const Pruned pruned = expect_exact(net, at::randn({2, 3, 16, 16}), 3);
  EXPECT_EQ(pruned.pruning.dense.params, 8 * 27 + 8 + 16 + 12 * 72 + 12 + 20 * 192 + 20 + 105);
  EXPECT_EQ(pruned.small.attr("conv1").toModule().attr("weight").toTensor().size(0), 4);
}

TEST(ScriptNets, NodesAreNamedAfterTheirModules) {
  Net net;
  auto conv1 = net.add("stem", nn::Sequential(conv(3, 8), nn::BatchNorm2d(8)));
  auto fc = net.add("head", nn::Linear(8, 5));
  net.compute = [=](const Tensor& x) mutable {
    return fc(at::adaptive_avg_pool2d(conv1->forward(x), {1, 1}).flatten(1));
  };
  auto script = torch_io::read_script(traced(net, at::randn({1, 3, 8, 8})), {{{1, 3, 8, 8}, {}}});
  std::vector<std::string> names;
  for (const Node& node : script.graph.nodes) names.push_back(node.op + " " + node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"Conv stem.0", "BatchNormalization stem.1",
                                             "GlobalAveragePool adaptive_avg_pool2d_0",
                                             "Flatten flatten_0", "Gemm head"}));
}

TEST(ScriptNets, ResidualWithInPlaceSum) {
  Net net;
  auto stem = net.add("stem", conv(3, 8));
  auto a = net.add("a", conv(8, 6));
  auto b = net.add("b", conv(6, 8));
  auto head = net.add("head", conv(8, 4));
  net.compute = [=](Tensor x) mutable {
    x = stem(x).relu();
    x += b(a(x).relu());
    return head(x.relu_());
  };
  expect_exact(net, at::randn({1, 3, 8, 8}), 2);
}

TEST(ScriptNets, GroupedAndDepthwise) {
  Net net;
  auto stem = net.add("stem", conv(3, 8, 1));
  auto depthwise = net.add("depthwise", conv(8, 8, 3, 8));
  auto point = net.add("point", conv(8, 12, 1));
  auto grouped = net.add("grouped", conv(12, 8, 3, 2));
  auto head = net.add("head", conv(8, 4, 1));
  net.compute = [=](const Tensor& x) mutable {
    return head(grouped(point(at::relu6(depthwise(stem(x)))).relu()));
  };
  expect_exact(net, at::randn({1, 3, 8, 8}), 3);
}

TEST(ScriptNets, ConcatChunkAndShuffle) {
  Net net;
  auto a = net.add("a", conv(3, 8));
  auto b = net.add("b", conv(3, 6));
  auto c = net.add("c", conv(14, 8));
  auto d = net.add("d", conv(8, 4));
  net.compute = [=](const Tensor& x) mutable {
    const Tensor y = c(at::cat({a(x), b(x).tanh()}, 1));
    const std::vector<Tensor> halves = y.chunk(2, 1);
    return d(at::cat({halves[1], halves[0].relu()}, 1));
  };
  expect_exact(net, at::randn({1, 3, 8, 8}), 3);
}

TEST(ScriptNets, TransposedConvolutionAndUpsampling) {
  Net net;
  auto down = net.add("down", conv(3, 8));
  auto up = net.add("up", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 6, 2).stride(2)));
  auto head = net.add("head", conv(14, 2));
  net.compute = [=](const Tensor& x) mutable {
    const Tensor y = down(x);
    const Tensor wide = at::upsample_nearest2d(y, {16, 16});
    return head(at::cat({up(at::leaky_relu(y)), wide}, 1));
  };
  expect_exact(net, at::randn({1, 3, 8, 8}), 2);
}

TEST(ScriptNets, GroupNorm) {
  Net net;
  auto a = net.add("a", conv(3, 12));
  auto norm = net.add("norm", nn::GroupNorm(3, 12));
  auto b = net.add("b", conv(12, 4));
  net.compute = [=](const Tensor& x) mutable { return b(norm(a(x)).relu()); };
  const Tensor x = at::randn({1, 3, 8, 8});
  const Pruned pruned =
      prune(traced(net, x), {x}, {.exact_only = false, .granularity = Granularity::kGroup});
  EXPECT_EQ(pruned.pruning.plan.groups.size(), 1) << pruned.dump;
  EXPECT_EQ(run(pruned.small, {x})[0].sizes(), (std::vector<int64_t>{1, 4, 8, 8}));
}

TEST(ScriptNets, ViewWithConstants) {
  Net net;
  auto a = net.add("a", conv(3, 8));
  auto fc = net.add("fc", nn::Linear(8 * 16, 5));
  net.compute = [=](const Tensor& x) mutable { return fc(a(x).relu().view({-1, 8 * 16})); };
  expect_exact(net, at::randn({2, 3, 4, 4}), 1);
}

TEST(ScriptNets, AttentionOverHeads) {
  Net net;
  auto embed = net.add("embed", nn::Linear(10, 16));
  auto norm = net.add("norm", nn::LayerNorm(nn::LayerNormOptions({16})));
  auto qkv = net.add("qkv", nn::Linear(16, 48));
  auto out = net.add("out", nn::Linear(16, 16));
  auto wide = net.add("wide", nn::Linear(16, 32));
  auto narrow = net.add("narrow", nn::Linear(32, 16));
  auto head = net.add("head", nn::Linear(16, 3));
  net.compute = [=](Tensor x) mutable {
    x = embed(x);
    const int64_t n = x.size(0);
    const int64_t t = x.size(1);
    const std::vector<Tensor> parts = qkv(norm(x)).chunk(3, -1);
    const auto heads = [&](const Tensor& y) { return y.view({n, t, 4, 4}).transpose(1, 2); };
    const Tensor q = heads(parts[0]);
    const Tensor scores = at::matmul(q, heads(parts[1]).transpose(-2, -1)) * 0.5;
    const Tensor mixed = at::matmul(scores.softmax(-1), heads(parts[2]));
    x = x + out(mixed.transpose(1, 2).contiguous().view({n, t, 16}));
    return head(x + narrow(at::gelu(wide(x))));
  };
  // The residual stream passes a LayerNorm, which mixes: it stays. Keys and queries are one group.
  const Tensor x = at::randn({2, 5, 10});
  expect_exact(net, x, 3);
  const Pruned all = prune(traced(net, x), {x}, {.exact_only = false});
  EXPECT_EQ(all.pruning.plan.groups.size(), 4) << all.dump;
  EXPECT_EQ(run(all.small, {x})[0].sizes(), (std::vector<int64_t>{2, 5, 3}));
}

TEST(ScriptNets, LstmOfTwoLayersAndDirections) {
  Net net;
  auto lstm = net.add(
      "lstm", nn::LSTM(nn::LSTMOptions(6, 8).num_layers(2).bidirectional(true).batch_first(true)));
  auto fc = net.add("fc", nn::Linear(16, 3));
  net.compute = [=](const Tensor& x) mutable { return fc(std::get<0>(lstm(x))); };
  const Pruned pruned = expect_exact(net, at::randn({2, 5, 6}), 1);
  EXPECT_EQ(pruned.small.attr("lstm").toModule().attr("weight_hh_l1").toTensor().sizes(),
            (std::vector<int64_t>{16, 4}));
}

TEST(ScriptNets, GruAndRnn) {
  Net net;
  auto gru = net.add("gru", nn::GRU(6, 8));
  auto rnn = net.add("rnn", nn::RNN(nn::RNNOptions(8, 10).bias(false)));
  auto fc = net.add("fc", nn::Linear(10, 3));
  net.compute = [=](const Tensor& x) mutable {
    return fc(std::get<0>(rnn(std::get<0>(gru(x)))).select(0, -1));
  };
  expect_exact(net, at::randn({5, 2, 6}), 2);
}

TEST(ScriptNets, ConvolutionAndNormalisationInOneDimension) {
  Net net;
  auto a = net.add("a", nn::Conv1d(nn::Conv1dOptions(4, 8, 3).dilation(2)));
  auto norm = net.add("norm", nn::BatchNorm1d(nn::BatchNorm1dOptions(8).affine(false)));
  auto slope = net.add("slope", nn::PReLU(nn::PReLUOptions().num_parameters(8)));
  auto b = net.add("b", nn::Conv1d(8, 4, 1));
  net.compute = [=](const Tensor& x) mutable { return b(slope(norm(a(x)))).mean(2); };
  expect_exact(net, at::randn({2, 4, 16}), 1);
}

TEST(ScriptNets, PiecesAndPadding) {
  Net net;
  auto a = net.add("a", conv(3, 8));
  auto b = net.add("b", conv(12, 4));
  net.compute = [=](const Tensor& x) mutable {
    const Tensor y = a(x);
    const Tensor z = at::constant_pad_nd(y.narrow(1, 2, 6).slice(1, 1), {1, 1, 1, 1, 3, 4});
    return b(z);
  };
  // The channels that are padding, and that no layer makes, follow the layer that reads them.
  expect_exact(net, at::randn({1, 3, 8, 8}), 3);
}

}  // namespace
}  // namespace parsimony::test
