#include "parsimony/torch_io/prune.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>

#include <filesystem>
#include <functional>

#include "examples/models/cifar_cnn.h"
#include "parsimony/base/errors.h"
#include "parsimony/configs/config.h"

namespace parsimony {
namespace {

namespace nn = torch::nn;

ConfigList half() { return from_shorthand({.criterion = "l1", .ratio = 0.5}); }

int64_t count(const nn::Module& module) {
  int64_t elements = 0;
  for (const at::Tensor& parameter : module.parameters()) elements += parameter.numel();
  return elements;
}

/// Values of everything that a module owns.
std::vector<at::Tensor> copy_of(const nn::Module& module) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : module.parameters()) copies.push_back(tensor.detach().clone());
  for (const at::Tensor& tensor : module.buffers()) copies.push_back(tensor.detach().clone());
  return copies;
}

bool unchanged(const nn::Module& module, const std::vector<at::Tensor>& before) {
  const std::vector<at::Tensor> now = copy_of(module);
  for (size_t i = 0; i < before.size(); ++i) {
    if (!now[i].sizes().equals(before[i].sizes()) || !at::equal(now[i], before[i])) return false;
  }
  return now.size() == before.size();
}

/// A convolution, then a linear layer behind a reshape that each test writes its own way.
struct ReshapingImpl : nn::Module {
  using Reshape = std::function<at::Tensor(const at::Tensor&)>;
  explicit ReshapingImpl(Reshape how) : reshape(std::move(how)) {
    register_module("conv", conv);
    register_module("fc", fc);
  }
  at::Tensor forward(const at::Tensor& x) { return fc(reshape(conv(x).relu())); }
  Reshape reshape;
  nn::Conv2d conv{nn::Conv2dOptions(3, 8, 3).padding(1)};
  nn::Linear fc{8 * 4 * 4, 5};
};

const std::vector<int64_t> kImage = {2, 3, 4, 4};

TEST(PruneModule, TheSameObjectBecomesSmall) {
  examples::CifarCnn model;
  EXPECT_EQ(count(*model), 2'122'186);
  const at::Tensor conv1 = model->named_parameters()["conv1.weight"];
  const at::Tensor x = at::rand({1, 3, 32, 32});
  const ConfigList convs =
      from_shorthand({.criterion = "l1", .ratio = 0.5, .op_types = {"Conv2d"}});
  const Pruned pruned = prune(model, x, convs);
  EXPECT_EQ(count(*model), 1'059'306);
  EXPECT_EQ(pruned.small.params, 1'059'306);
  EXPECT_TRUE(pruned.proof.holds()) << to_text(*pruned.proof.worst());
  EXPECT_EQ(conv1.size(0), 16) << "the tensor that others hold";
  EXPECT_EQ(model->forward(x).sizes(), (std::vector<int64_t>{1, 10}));
  EXPECT_TRUE(model->is_training());
}

TEST(PruneModule, TheOptimizerGoesOn) {
  examples::CifarCnn model;
  torch::optim::Adam optimizer(model->parameters(), 1e-3);
  const at::Tensor x = at::rand({4, 3, 32, 32});
  const auto step = [&] {
    optimizer.zero_grad();
    const at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    optimizer.step();
    return loss.item<double>();
  };
  step();
  const Pruned pruned = prune(model, x, half());
  EXPECT_GT(carry_over(optimizer, pruned).tensors, 0);
  const double before = step();
  for (int i = 0; i < 3; ++i) step();
  EXPECT_LT(step(), before);
}

TEST(PruneModule, APlanMakesAFreshModuleFitTheSavedWeights) {
  const auto folder = std::filesystem::temp_directory_path() / "parsimony_prune_test";
  std::filesystem::create_directories(folder);
  const std::string weights = (folder / "small.pt").string();
  const std::string plan = (folder / "small.plan.json").string();
  examples::CifarCnn model;
  const at::Tensor x = at::rand({1, 3, 32, 32});
  prune(model, x, half()).plan.save(plan);
  torch::save(model, weights);
  examples::CifarCnn again;
  restore(again, plan);
  torch::load(again, weights);
  EXPECT_TRUE(at::equal(again->forward(x), model->forward(x)));
  std::filesystem::remove_all(folder);
}

TEST(PruneModule, ASizeWrittenOutIsRefusedAndNothingChanges) {
  ReshapingImpl model([](const at::Tensor& x) { return x.view({x.size(0), 128}); });
  const auto before = copy_of(model);
  try {
    prune(model, at::rand(kImage), half());
    FAIL() << "was not refused";
  } catch (const UnsupportedError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("128"), std::string::npos) << text;
    EXPECT_NE(text.find("flatten"), std::string::npos) << text;
  }
  EXPECT_TRUE(unchanged(model, before));
  EXPECT_EQ(model.conv->options.out_channels(), 8);
  EXPECT_NO_THROW(model.forward(at::rand(kImage)));
}

TEST(PruneModule, ASizeThatIsComputedFollows) {
  ReshapingImpl model([](const at::Tensor& x) {
    return x.view({x.size(0), x.size(1) * x.size(2) * x.size(3)});
  });
  const Pruned pruned = prune(model, at::rand(kImage), half());
  EXPECT_TRUE(pruned.proof.holds());
  EXPECT_EQ(model.fc->options.in_features(), 64);
}

TEST(PruneModule, GroupsThatMixAreProvenByMaskedExecution) {
  nn::Sequential model(nn::Linear(6, 16), nn::LayerNorm(nn::LayerNormOptions({16})), nn::GELU(),
                       nn::Linear(16, 3));
  const auto run = [&](const std::vector<at::Tensor>& x) { return model->forward(x.at(0)); };
  const Pruned pruned = prune(*model, run, {at::rand({4, 6})}, half());
  EXPECT_TRUE(pruned.proof.mixes);
  EXPECT_TRUE(pruned.proof.holds()) << to_text(*pruned.proof.worst());
  EXPECT_EQ(model->parameters().front().size(0), 8);
}

TEST(PruneModule, ANormWithoutParametersHasNoneToCut) {
  nn::Sequential model(nn::Conv2d(3, 8, 3), nn::BatchNorm2d(nn::BatchNormOptions(8).affine(false)),
                       nn::ReLU(), nn::Conv2d(8, 4, 1));
  const auto run = [&](const std::vector<at::Tensor>& x) { return model->forward(x.at(0)); };
  const Pruned pruned = prune(*model, run, {at::rand(kImage)}, half());
  EXPECT_TRUE(pruned.proof.holds()) << to_text(*pruned.proof.worst());
  EXPECT_EQ(model->buffers().front().size(0), 4);
}

/// A hidden layer between two others, whose tensors each test lays out its own way.
struct Layered : nn::Module {
  Layered() {
    register_module("first", first);
    register_module("up", up);
    register_module("down", down);
    register_module("last", last);
  }
  at::Tensor forward(const at::Tensor& x) {
    return last(down(up(first(x).relu()).relu()).relu() * gain);
  }
  nn::Linear first{8, 16}, up{16, 32}, down{32, 16}, last{16, 5};
  at::Tensor gain = register_buffer("gain", at::rand({16}) + 1);
};

void expect_proven(Layered& model) {
  const Pruned pruned = prune(model, at::rand({2, 8}), half());
  EXPECT_TRUE(pruned.proof.holds()) << to_text(*pruned.proof.worst());
  EXPECT_EQ(model.up->weight.sizes(), (std::vector<int64_t>{16, 8}));
  EXPECT_EQ(model.down->weight.sizes(), (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(model.gain.numel(), 8);
}

TEST(PruneModule, ADecoderThatIsTheEncodersTransposeIsProven) {
  Layered model;
  model.down->weight.set_data(model.up->weight.detach().t());
  expect_proven(model);
}

TEST(PruneModule, OverlappingViewsOfOneBufferAreProven) {
  Layered model;
  const at::Tensor buffer = at::randn({800}) / 4;
  model.up->weight.set_data(buffer.narrow(0, 0, 512).view({32, 16}));
  model.down->weight.set_data(buffer.narrow(0, 288, 512).view({16, 32}));
  model.up->bias.set_data(buffer.narrow(0, 500, 32));
  expect_proven(model);
}

TEST(PruneModule, ExpandedAndStridedTensorsAreProven) {
  Layered model;
  model.gain.set_data(at::full({1}, 2.0).expand({16}));
  model.up->bias.set_data(at::full({1}, 0.5).expand({32}));
  model.down->weight.set_data((at::randn({16, 64}) / 4).slice(1, 0, 64, 2));
  expect_proven(model);
}

TEST(PruneModule, WhatDiffersIsPutBack) {
  const nn::Conv2d* conv = nullptr;
  ReshapingImpl model([&](const at::Tensor& x) {
    return x.flatten(1) * static_cast<double>((*conv)->weight.size(0));
  });
  conv = &model.conv;  // what it computes depends on its width
  const auto before = copy_of(model);
  EXPECT_THROW(prune(model, at::rand(kImage), half()), VerificationError);
  EXPECT_TRUE(unchanged(model, before));
  EXPECT_EQ(model.fc->options.in_features(), 128);
}

}  // namespace
}  // namespace parsimony
