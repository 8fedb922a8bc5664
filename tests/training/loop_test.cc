// What an epoch is made of: rates, optimizers, losses, numbers of fewer bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "parsimony/base/errors.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/labelled.h"
#include "parsimony/training/loop/optimizer.h"
#include "parsimony/training/loop/precision.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::small_data;

TrainSettings with_schedule(RateSchedule schedule) {
  TrainSettings settings;
  settings.lr = 0.1;
  settings.epochs = 10;
  settings.schedule = schedule;
  return settings;
}

TEST(LearningRate, IsConstant) {
  EXPECT_EQ(learning_rate(with_schedule(RateSchedule::kConstant), 999, 1000), 0.1);
}

TEST(LearningRate, FollowsHalfACosine) {
  const TrainSettings settings = with_schedule(RateSchedule::kCosine);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 0, 1000), 0.1);
  EXPECT_NEAR(learning_rate(settings, 250, 1000), 0.05 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(learning_rate(settings, 500, 1000), 0.05, 1e-12);
  EXPECT_NEAR(learning_rate(settings, 1000, 1000), 0, 1e-12);
}

TEST(LearningRate, StepsAtTheEndsOfEpochs) {
  TrainSettings settings = with_schedule(RateSchedule::kStep);
  settings.step_epochs = 3;
  settings.step_factor = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(settings, 299, 1000), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 300, 1000), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 899, 1000), 0.025);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 900, 1000), 0.0125);
}

/// step / steps · epochs is not exact in binary numbers.
TEST(LearningRate, StepsExactlyWhereAnEpochBegins) {
  for (int epochs = 1; epochs < 60; ++epochs) {
    TrainSettings settings = with_schedule(RateSchedule::kStep);
    settings.epochs = epochs;
    settings.step_epochs = 1;
    settings.step_factor = 0.5;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      EXPECT_DOUBLE_EQ(learning_rate(settings, int64_t{7} * epoch, int64_t{7} * epochs),
                       0.1 * std::pow(0.5, epoch))
          << epoch << " of " << epochs;
    }
  }
}

TEST(LearningRate, RisesAndFallsInOneCycle) {
  const TrainSettings settings = with_schedule(RateSchedule::kOneCycle);
  EXPECT_DOUBLE_EQ(learning_rate(settings, 0, 1000), 0.1 / 25);
  EXPECT_NEAR(learning_rate(settings, 150, 1000), (0.1 + 0.1 / 25) / 2, 1e-12);
  EXPECT_NEAR(learning_rate(settings, 300, 1000), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(settings, 650, 1000), (0.1 + 0.1 / 250'000) / 2, 1e-12);
  EXPECT_NEAR(learning_rate(settings, 1000, 1000), 0.1 / 250'000, 1e-12);
}

/// One step on the parameter 1 with gradient 1.
double after_a_step(const TrainSettings& settings) {
  at::Tensor parameter = at::ones({1}).set_requires_grad(true);
  const auto optimizer = make_optimizer({parameter}, settings);
  parameter.mutable_grad() = at::ones({1});
  optimizer->step();
  return parameter.item<double>();
}

TEST(Optimizers, StepAsTheirDefinitionsSay) {
  TrainSettings settings;
  settings.lr = 0.1;
  settings.weight_decay = 0.5;
  settings.optimizer = OptimizerKind::kSgd;
  EXPECT_NEAR(after_a_step(settings), 1 - 0.1 * (1 + 0.5), 1e-6);
  settings.optimizer = OptimizerKind::kAdam;
  EXPECT_NEAR(after_a_step(settings), 1 - 0.1, 1e-6);  // decay is part of the gradient
  settings.optimizer = OptimizerKind::kAdamW;
  EXPECT_NEAR(after_a_step(settings), (1 - 0.1 * 0.5) - 0.1, 1e-6);
}

TEST(Optimizers, SgdHasMomentum) {
  TrainSettings settings;
  settings.lr = 0.1;
  settings.momentum = 0.5;
  settings.optimizer = OptimizerKind::kSgd;
  at::Tensor parameter = at::ones({1}).set_requires_grad(true);
  const auto optimizer = make_optimizer({parameter}, settings);
  for (int step = 0; step < 2; ++step) {
    parameter.mutable_grad() = at::ones({1});
    optimizer->step();
  }
  EXPECT_NEAR(parameter.item<double>(), 1 - 0.1 - 0.15, 1e-6);
}

TEST(Optimizers, TheRateReachesThem) {
  TrainSettings settings;
  settings.optimizer = OptimizerKind::kSgd;
  at::Tensor parameter = at::ones({1}).set_requires_grad(true);
  const auto optimizer = make_optimizer({parameter}, settings);
  set_learning_rate(*optimizer, 0.25);
  parameter.mutable_grad() = at::ones({1});
  optimizer->step();
  EXPECT_NEAR(parameter.item<double>(), 0.75, 1e-6);
}

/// The loss of the first epoch of a network that does not change.
double still_loss(TrainSettings settings, TrainedModule* teacher = nullptr) {
  at::manual_seed(1);
  const auto net = test::live_small_net()();
  settings.optimizer = OptimizerKind::kSgd;
  settings.lr = 0;
  const TrainContext place{small_data(), c10::kCPU, false, teacher, nullptr};
  return Trainer(labelled_training(*net, place, settings)).epoch(0).loss;
}

TEST(Loss, SmoothingMixesInAllClasses) {
  TrainSettings settings;
  const double sharp = still_loss(settings);
  settings.label_smoothing = 1;
  const double flat = still_loss(settings);
  settings.label_smoothing = 0.25;
  EXPECT_NE(sharp, flat);
  EXPECT_NEAR(still_loss(settings), 0.75 * sharp + 0.25 * flat, 1e-5);
}

TEST(Loss, ATeacherOfTheSameMindCostsNothing) {
  TrainSettings settings;
  settings.distill = 1;
  at::manual_seed(1);
  const auto same = test::live_small_net()();
  same->train(true);
  EXPECT_NEAR(still_loss(settings, same.get()), 0, 1e-6);
  at::manual_seed(2);
  const auto other = test::live_small_net()();
  other->train(true);
  const double apart = still_loss(settings, other.get());
  EXPECT_GT(apart, 1e-4);
  settings.distill = 0.5;
  EXPECT_NEAR(still_loss(settings, other.get()), 0.5 * still_loss({}) + 0.5 * apart, 1e-5);
}

TEST(Precision, BFloat16LossIsNearFloat32s) {
  TrainSettings settings;
  const double exact = still_loss(settings);
  settings.precision = Precision::kBFloat16;
  const double coarse = still_loss(settings);
  EXPECT_NE(coarse, exact);
  EXPECT_NEAR(coarse, exact, 0.02 * exact);
}

class Precisions : public testing::TestWithParam<const char*> {};

TEST_P(Precisions, BFloat16TrainsEveryKindOfNet) {
  const test::TemporaryFolder folder;
  const auto net = test::small_net(GetParam(), folder)();
  TrainSettings settings;
  settings.precision = Precision::kBFloat16;
  settings.epochs = 4;
  settings.lr = 0.01;
  const TrainContext place{small_data(), c10::kCPU};
  Trainer trainer(labelled_training(*net, place, settings));
  const double first = trainer.epoch(0).loss;
  double last = first;
  for (int epoch = 1; epoch < 4; ++epoch) last = trainer.epoch(epoch).loss;
  EXPECT_LT(last, first);
  for (const auto& [name, tensor] : net->parameters()) {
    EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Precisions, testing::Values("live", "onnx", "script"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(Precision, AutocastEndsWithItsScope) {
  const at::Tensor a = at::ones({2, 2});
  {
    const Autocast autocast(Precision::kBFloat16, c10::kCPU);
    EXPECT_EQ(at::mm(a, a).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kFloat);
}

TEST(Precision, HalfNeedsCuda) {
  EXPECT_THROW(Autocast(Precision::kFloat16, c10::kCPU), UnsupportedError);
}

TEST(GradientScaler, ScalesDownAndLeavesInfiniteStepsOut) {
  GradientScaler scaler(Precision::kFloat16);
  at::Tensor parameter = at::ones({2}).set_requires_grad(true);
  EXPECT_EQ(scaler.scaled(at::ones({})).item<double>(), 65536);
  parameter.mutable_grad() = at::full({2}, 65536.0);
  EXPECT_EQ(scaler.unscale({parameter}).item<double>(), 0);
  EXPECT_EQ(parameter.grad()[0].item<double>(), 1);
  parameter.mutable_grad() = at::full({2}, INFINITY);
  EXPECT_EQ(scaler.unscale({parameter}).item<double>(), 1);
  EXPECT_EQ(scaler.scale(), 32768);
}

TEST(GradientScaler, DoublesAfterManyGoodSteps) {
  GradientScaler scaler(Precision::kFloat16);
  scaler.take_up(8, 1998);
  at::Tensor parameter = at::ones({1}).set_requires_grad(true);
  parameter.mutable_grad() = at::ones({1});
  EXPECT_EQ(scaler.unscale({parameter}).item<double>(), 0);
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_EQ(scaler.unscale({parameter}).item<double>(), 0);
  EXPECT_EQ(scaler.scale(), 16);
  EXPECT_EQ(scaler.good_steps(), 2000);
}

TEST(GradientScaler, LeavesFloat32Alone) {
  GradientScaler scaler(Precision::kFloat32);
  at::Tensor parameter = at::ones({1}).set_requires_grad(true);
  parameter.mutable_grad() = at::full({1}, INFINITY);
  EXPECT_FALSE(scaler.unscale({parameter}).defined());
  EXPECT_EQ(scaler.scaled(at::ones({})).item<double>(), 1);
}

/// Parameters after some steps of a recipe's optimizer, by its own hand or by fused kernels.
std::vector<at::Tensor> after_steps(OptimizerKind kind, c10::Device device, bool fused) {
  at::manual_seed(1);
  TrainSettings settings;
  settings.optimizer = kind;
  settings.weight_decay = 0.1;
  std::vector<at::Tensor> parameters;
  for (const int64_t size : {3, 17}) {
    parameters.push_back(at::randn({size, 4}).to(device).set_requires_grad(true));
  }
  const auto optimizer = make_optimizer(parameters, settings);
  const auto kernels = fused ? FusedStep::of(*optimizer) : nullptr;
  for (int step = 0; step < 5; ++step) {
    const double rate = 0.1 / (1 + step);
    set_learning_rate(*optimizer, rate);
    for (at::Tensor& parameter : parameters) {
      parameter.mutable_grad() = at::randn(parameter.sizes()).to(device);
    }
    // A parameter without a gradient takes no part, and its steps are fewer.
    if (step % 2 == 1) parameters.back().mutable_grad().reset();
    if (!fused) {
      optimizer->step();
      continue;
    }
    kernels->set_rate(rate);
    kernels->step(at::ones({}, device));  // infinite gradients
    kernels->step(at::zeros({}, device));
  }
  if (fused) kernels->write_back_counts();
  // The state is the optimizer's own, which goes on by itself.
  for (at::Tensor& parameter : parameters) parameter.mutable_grad() = at::ones_like(parameter);
  optimizer->step();
  return parameters;
}

TEST(FusedStep, TakesTheOptimizersSteps) {
  const at::Tensor parameter = at::ones({1}).set_requires_grad(true);
  const auto muon = make_optimizer({parameter}, {.optimizer = OptimizerKind::kMuon});
  EXPECT_FALSE(FusedStep::of(*muon));
  const auto sgd = make_optimizer({parameter}, {.optimizer = OptimizerKind::kSgd});
  if (!FusedStep::of(*sgd)) GTEST_SKIP() << "this libtorch has no fused optimizers";
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    const auto expected = after_steps(kind, c10::kCPU, false);
    const c10::Device device(at::hasCUDA() ? c10::kCUDA : c10::kCPU);
    const auto found = after_steps(kind, device, true);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::allclose(found[i].cpu(), expected[i], 1e-5, 1e-6)) << static_cast<int>(kind);
    }
  }
}

/// Losses of a few epochs.
std::vector<double> losses_on(c10::Device device, Precision precision, const std::string& kind,
                              OptimizerKind optimizer, std::string* said) {
  const test::TemporaryFolder folder;
  at::manual_seed(1);
  const auto net = test::small_net(kind, folder)();
  place(*net, device, false);
  TrainSettings settings;
  settings.precision = precision;
  settings.optimizer = optimizer;
  settings.epochs = 3;
  settings.lr = 0.01;
  settings.batch = 16;
  TrainContext context{small_data(), device};
  context.say = [said](const std::string& line) { *said += line; };
  Trainer trainer(labelled_training(*net, context, settings));
  std::vector<double> losses;
  for (int epoch = 0; epoch < 3; ++epoch) losses.push_back(trainer.epoch(epoch).loss);
  return losses;
}

TEST(StepGraph, ReplaysTheSteps) {
  if (!at::hasCUDA()) GTEST_SKIP() << "there is no CUDA device";
  const c10::Device device(c10::kCUDA);
  for (const std::string kind : {"live", "onnx", "script"}) {
    for (const OptimizerKind optimizer : {OptimizerKind::kSgd, OptimizerKind::kAdamW}) {
      std::string said;
      const auto expected = losses_on(c10::kCPU, Precision::kFloat32, kind, optimizer, &said);
      const auto found = losses_on(device, Precision::kFloat32, kind, optimizer, &said);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 0.01 * expected[i]) << kind;
      }
      const auto half = losses_on(device, Precision::kFloat16, kind, optimizer, &said);
      EXPECT_LT(half.back(), half.front()) << kind;
      EXPECT_EQ(said, "") << kind;
    }
  }
}

TEST(TrainContext, GivesMatricesOfFourDimensionsTheFormat) {
  const auto net = test::live_small_net()();
  place(*net, c10::kCPU, true);
  for (const auto& [name, tensor] : net->parameters()) {
    if (tensor.dim() != 4) continue;
    EXPECT_TRUE(tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) << name;
  }
}

TEST(TrainContext, ChannelsLastTrainsAsWell) {
  const Recipe recipe;
  const auto loss = [&](bool channels_last) {
    at::manual_seed(1);
    const auto net = test::live_small_net()();
    place(*net, c10::kCPU, channels_last);
    const TrainContext where{small_data(), c10::kCPU, channels_last};
    Trainer trainer(labelled_training(*net, where, recipe.train));
    trainer.epoch(0);
    return trainer.epoch(1).loss;
  };
  EXPECT_NEAR(loss(true), loss(false), 1e-3);
}

TEST(Device, IsReadFromText) {
  EXPECT_EQ(parse_device("cpu"), c10::Device(c10::kCPU));
  EXPECT_THROW(parse_device("abacus"), ConfigError);
  EXPECT_THROW(parse_device("mkldnn"), ConfigError);
}

}  // namespace
}  // namespace parsimony::training
