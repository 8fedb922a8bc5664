// What an edit leaves as it was, what it takes back, and what it refuses.

#include <ATen/core/grad_mode.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <sstream>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/prune.h"
#include "tests/torch_io/live_editing.h"

namespace parsimony::torch_io {
namespace {

namespace nn = torch::nn;

struct BranchingNetImpl : nn::Module {
  BranchingNetImpl() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("fc", fc);
    scale = register_parameter("scale", at::rand({8, 1, 1}));
  }
  at::Tensor forward(const at::Tensor& x) {
    return fc(((norm(conv(x)) * scale).relu()).flatten(1));
  }
  nn::Conv2d conv{nn::Conv2dOptions(3, 8, 3).padding(1)};
  nn::BatchNorm2d norm{8};
  nn::Linear fc{8 * 4, 5};
  at::Tensor scale;
};
TORCH_MODULE(BranchingNet);

const std::vector<int64_t> kKeep = {0, 2, 3, 6, 7};

Plan plan_of_net() {
  std::vector<int64_t> features;
  for (const int64_t channel : kKeep) {
    for (int64_t i = 0; i < 4; ++i) features.push_back(4 * channel + i);
  }
  PlanGroup group;
  group.size = 8;
  group.kept = 5;
  for (const char* tensor : {"conv.weight", "conv.bias", "norm.weight", "norm.bias",
                             "norm.running_mean", "norm.running_var", "scale"}) {
    group.slices.push_back({tensor, 0, Role::kOut, 8, kKeep});
  }
  group.slices.push_back({"fc.weight", 1, Role::kIn, 32, features});
  Plan plan;
  plan.groups.push_back(group);
  return plan;
}

at::Tensor masked_output(BranchingNet& net, const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  const at::Tensor hidden = (net->norm(net->conv(x)) * net->scale).relu();
  return net->fc(masked(hidden, 1, kKeep).flatten(1));
}

TEST(ModuleEditor, ComputesWhatTheMaskedNetworkDid) {
  BranchingNet net;
  net->eval();
  const at::Tensor x = at::randn({3, 3, 2, 2});
  const at::Tensor expected = masked_output(net, x);
  ModuleEditor editor(*net);
  editor.apply(plan_of_net());
  editor.keep();
  expect_close(net->forward(x), expected);
  EXPECT_EQ(net->fc->options.in_features(), 20);
  EXPECT_TRUE(editor.forward_constants().empty());
}

TEST(ModuleEditor, TensorsKeepTheirIdentityAndNature) {
  BranchingNet net;
  net->to(at::kDouble);
  net->conv->bias.set_requires_grad(false);
  net->norm->eval();
  const nn::Conv2d holder = net->conv;
  const at::Tensor weight = net->conv->weight;
  const auto format = at::MemoryFormat::ChannelsLast;
  weight.set_data(weight.detach().contiguous(format));
  net->forward(at::randn({3, 3, 2, 2}, at::kDouble)).sum().backward();
  const at::Tensor grad = select(weight.grad(), 0, kKeep);
  {
    ModuleEditor editor(*net);
    editor.apply(plan_of_net());
    editor.keep();
  }
  EXPECT_TRUE(weight.is_same(net->named_parameters()["conv.weight"]));
  EXPECT_EQ(holder.get(), net->conv.get());
  EXPECT_EQ(holder->weight.size(0), 5);
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_TRUE(weight.is_leaf());
  EXPECT_FALSE(net->conv->bias.requires_grad());
  EXPECT_EQ(weight.scalar_type(), at::kDouble);
  EXPECT_TRUE(weight.is_contiguous(format));
  EXPECT_TRUE(at::equal(weight.grad(), grad));
  EXPECT_TRUE(net->is_training());
  EXPECT_FALSE(net->norm->is_training());
}

TEST(ModuleEditor, TrainingGoesOnWhileAnOldLossIsAlive) {
  BranchingNet net;
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  const at::Tensor x = at::randn({3, 3, 2, 2});
  const at::Tensor old_loss = net->forward(x).sum();
  old_loss.backward();
  ModuleEditor editor(*net);
  editor.apply(plan_of_net());
  editor.keep();
  sgd.zero_grad();
  net->forward(x).sum().backward();
  EXPECT_EQ(net->conv->weight.grad().sizes(), net->conv->weight.sizes());
  const at::Tensor before = net->fc->weight.detach().clone();
  sgd.step();
  EXPECT_FALSE(at::equal(before, net->fc->weight));
}

/// Everything that an edit could change, to the bit and to the place in memory.
struct Snapshot {
  explicit Snapshot(BranchingNet& net) {
    std::vector<at::Tensor> all = net->parameters();
    for (const at::Tensor& buffer : net->buffers()) all.push_back(buffer);
    for (const at::Tensor& tensor : all) {
      places.push_back(tensor.data_ptr());
      strides.push_back(tensor.strides().vec());
      values.push_back(tensor.detach().clone());
      grads.push_back(tensor.grad().defined() ? tensor.grad().data_ptr() : nullptr);
    }
    std::ostringstream text;
    text << net;
    printed = text.str();
  }
  void expect_same(const Snapshot& other) const {
    EXPECT_EQ(places, other.places);
    EXPECT_EQ(strides, other.strides);
    EXPECT_EQ(grads, other.grads);
    EXPECT_EQ(printed, other.printed);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(at::equal(values[i], other.values[i]));
    }
  }
  std::vector<void*> places;
  std::vector<std::vector<int64_t>> strides;
  std::vector<at::Tensor> values;
  std::vector<void*> grads;
  std::string printed;
};

TEST(ModuleEditor, RollbackPutsEverythingBack) {
  BranchingNet net;
  net->forward(at::randn({3, 3, 2, 2})).sum().backward();
  const Snapshot before(net);
  {
    ModuleEditor editor(*net);
    editor.zero_smallest("conv.weight", 7);
    editor.apply(plan_of_net());
    EXPECT_EQ(net->conv->options.out_channels(), 5);
  }
  Snapshot(net).expect_same(before);
  net->forward(at::randn({3, 3, 2, 2})).sum().backward();
}

TEST(ModuleEditor, AFaultInTheMiddleLeavesEverything) {
  BranchingNet net;
  const Snapshot before(net);
  Plan plan = plan_of_net();
  plan.groups[0].slices.back().size = 31;
  EXPECT_THROW(restore(*net, plan), ModelError);
  plan.groups[0].slices.back().tensor = "fc.weigth";
  EXPECT_EQ(message_of<ModelError>([&] { restore(*net, plan); }),
            "the module has no parameter or buffer \"fc.weigth\". Did you mean \"fc.weight\"?");
  plan.groups[0].slices.pop_back();
  plan.groups[0].slices.erase(plan.groups[0].slices.begin() + 1);  // conv.bias
  EXPECT_THROW(restore(*net, plan), ModelError);
  Snapshot(net).expect_same(before);
}

TEST(ModuleEditor, ATensorOfTwoNamesIsCutOnce) {
  nn::Sequential net(nn::Linear(nn::LinearOptions(4, 6).bias(false)));
  net->register_parameter("tied", net->at<nn::LinearImpl>(0).weight);
  const std::vector<AxisKeep> rows = {{0, 6, {1, 4}}};
  {
    ModuleEditor editor(*net);
    editor.slice("0.weight", rows);
    editor.slice("tied", rows);
    editor.commit();
    EXPECT_EQ(net->at<nn::LinearImpl>(0).options.out_features(), 2);
    const std::vector<AxisKeep> others = {{0, 6, {1, 5}}};
    EXPECT_EQ(message_of<ModelError>([&] { editor.slice("tied", others); }),
              "tensor \"tied\": it is also registered as \"0.weight\", which keeps other indices");
  }
  EXPECT_EQ(net->at<nn::LinearImpl>(0).weight.size(0), 6);
}

TEST(ModuleEditor, SlicesComposeAndBuffersAreCut) {
  nn::Sequential net;
  net->register_buffer("mask", at::arange(6));
  ModuleEditor editor(*net);
  editor.slice("mask", std::vector<AxisKeep>{{0, 6, {0, 2, 3, 5}}});
  editor.slice("mask", std::vector<AxisKeep>{{0, 4, {1, 3}}});
  EXPECT_TRUE(at::equal(net->buffers()[0], at::tensor({2, 5}, at::kLong)));
  EXPECT_THROW(editor.copy("b", "mask", "x", 0), UnsupportedError);
}

TEST(ModuleEditor, ZeroesTheSmallest) {
  nn::Linear linear(nn::LinearOptions(3, 2).bias(false));
  linear->weight.set_data(at::tensor({-3.F, 1.F, 2.F, -1.F, 1.F, 5.F}).view({2, 3}));
  ModuleEditor editor(*linear);
  editor.zero_smallest("weight", 2);  // of three ones, the first two
  EXPECT_TRUE(
      at::equal(linear->weight.detach().flatten(), at::tensor({-3.F, 0.F, 2.F, 0.F, 1.F, 5.F})));
  EXPECT_EQ(message_of<ModelError>([&] { editor.zero_smallest("weight", 7); }),
            "tensor \"weight\": expected 0 to 6 zeros, found 7");
}

TEST(ModuleEditor, ForwardConstantsAreNotedWithWhatThePlanSays) {
  BranchingNet net;
  Plan plan = plan_of_net();
  plan.integers.push_back(
      {"x.9", "shape", 1, HostTensor::vector({1, 32}), HostTensor::vector({1, 20})});
  ModuleEditor editor(*net);
  editor.apply(plan);
  ASSERT_EQ(editor.forward_constants().size(), 1U);
  EXPECT_EQ(editor.forward_constants()[0].from->ints[1], 32);
  EXPECT_STREQ(errors::forward_is_fixed(editor.forward_constants(), "shape is invalid").what(),
               "the module does not run with its new sizes: shape is invalid\n"
               "Its forward contains hard-coded sizes:\n"
               "  \"x.9\" shape from [1, 32] to [1, 20]\n"
               "Use -1 for such a size, or flatten");
}

TEST(Restore, AFreshModuleTakesTheSmallWeights) {
  BranchingNet pruned;
  restore(*pruned, plan_of_net());
  std::stringstream file;
  torch::save(pruned, file);
  BranchingNet fresh;
  Plan plan = plan_of_net();
  plan.updates.push_back({"conv.bias", "values are loaded"});
  plan.zeros.push_back({"fc.weight", 3});
  restore(*fresh, plan);
  torch::load(fresh, file);
  pruned->eval();
  fresh->eval();
  const at::Tensor x = at::randn({3, 3, 2, 2});
  EXPECT_TRUE(at::equal(fresh->forward(x), pruned->forward(x)));
  EXPECT_EQ(fresh->conv->options.out_channels(), 5);
}

}  // namespace
}  // namespace parsimony::torch_io
