// Steps that turn all directions of a matrix alike.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/serialize/archive.h>

#include <sstream>
#include <utility>
#include <vector>

#include "parsimony/torch_io/optimizer.h"
#include "parsimony/training/loop/optimizer.h"

namespace parsimony::training {
namespace {

/// What one step of Muon takes from `parameter`.
at::Tensor muon_step(const at::Tensor& parameter, const at::Tensor& gradient,
                     TrainSettings settings = {}) {
  settings.optimizer = OptimizerKind::kMuon;
  settings.lr = 0.01;
  at::Tensor trained = parameter.clone().set_requires_grad(true);
  const auto optimizer = make_optimizer({trained}, settings);
  trained.mutable_grad() = gradient;
  optimizer->step();
  return parameter - trained.detach();
}

TEST(Muon, TurnsAllDirectionsAlike) {
  at::manual_seed(1);
  for (const auto& [rows, columns] : {std::pair(8, 24), std::pair(24, 8), std::pair(8, 12)}) {
    const at::Tensor matrix = at::randn({rows, columns});
    const auto [u, values, v] = at::svd(matrix);
    ASSERT_GT((values / values.norm()).min().item<float>(), 0.01F);
    const at::Tensor middle = u.t().mm(orthogonalised(matrix)).mm(v);
    const at::Tensor found = middle.diagonal();
    EXPECT_LT((middle - at::diag(found)).abs().max().item<float>(), 1e-5F);
    EXPECT_GT(found.min().item<float>(), 0.6F);
    EXPECT_LT(found.max().item<float>(), 1.3F);
  }
}

TEST(Muon, StepsAreRelative) {
  at::manual_seed(1);
  const at::Tensor kernels = at::randn({8, 4, 3, 3});
  for (const double scale : {1.0, 1e-3}) {  // of the gradient: it does not matter
    const at::Tensor step = muon_step(kernels, scale * kernels);
    EXPECT_NEAR((step.norm() / kernels.norm()).item<double>(), 0.01, 1e-6);
    EXPECT_GT((step * kernels).sum().item<double>(), 0);
  }
  EXPECT_NEAR(muon_step(at::zeros({4, 25}), at::ones({4, 25})).norm().item<double>(),
              0.01 * 1e-3 * 10, 1e-8);
  EXPECT_EQ(muon_step(kernels, at::zeros_like(kernels)).abs().max().item<double>(), 0);
}

TEST(Muon, VectorsAndDepthwiseKernelsTakeNesterovsStep) {
  for (const auto& dims : {std::vector<int64_t>{5}, {5, 1, 3, 3}}) {
    const at::Tensor step = muon_step(at::ones(dims), at::ones(dims));
    EXPECT_NEAR(step.min().item<double>(), 0.01 * 1.9, 1e-6);
    EXPECT_NEAR(step.max().item<double>(), 0.01 * 1.9, 1e-6);
  }
}

TEST(Muon, WeightDecayIsDecoupled) {
  TrainSettings settings;
  settings.weight_decay = 0.5;
  const at::Tensor kernels = at::randn({8, 4});
  const at::Tensor step = muon_step(kernels, at::zeros_like(kernels), settings);
  EXPECT_TRUE(at::allclose(step, 0.01 * 0.5 * kernels, 1e-4));
}

TEST(Muon, GoesOnFromWhatWasSaved) {
  at::manual_seed(1);
  TrainSettings settings;
  settings.optimizer = OptimizerKind::kMuon;
  at::Tensor first = at::randn({4, 3}).set_requires_grad(true);
  const auto optimizer = make_optimizer({first}, settings);
  const auto step = [](torch::optim::Optimizer& one, at::Tensor& parameter, const at::Tensor& g) {
    parameter.mutable_grad() = g;
    one.step();
  };
  step(*optimizer, first, at::randn({4, 3}));
  torch::serialize::OutputArchive saved;
  optimizer->save(saved);
  std::stringstream stream;
  saved.save_to(stream);
  torch::serialize::InputArchive loaded;
  loaded.load_from(stream);
  at::Tensor second = first.detach().clone().set_requires_grad(true);
  const auto resumed = make_optimizer({second}, settings);
  resumed->load(loaded);
  const at::Tensor gradient = at::randn({4, 3});
  step(*optimizer, first, gradient);
  step(*resumed, second, gradient);
  EXPECT_TRUE(at::equal(first, second));
}

TEST(Muon, ItsStateIsCutWithTheNetwork) {
  TrainSettings settings;
  settings.optimizer = OptimizerKind::kMuon;
  at::Tensor before = at::randn({4, 3}).set_requires_grad(true);
  const auto optimizer = make_optimizer({before}, settings);
  before.mutable_grad() = at::arange(12.0F).view({4, 3});
  optimizer->step();
  const at::Tensor after = at::randn({2, 3}).set_requires_grad(true);
  const std::vector<ReplacedParameter> replaced{{"w", before, after, {{0, 4, {1, 3}}}}};
  EXPECT_EQ(carry_over(*optimizer, replaced).tensors, 1);
}

}  // namespace
}  // namespace parsimony::training
