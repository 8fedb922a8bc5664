// Penalties against autograd and against formulas written out.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "parsimony/training/run/between_cuts.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::example;

std::vector<ParameterGroup> groups_of(TrainableModel& net) {
  return net.groups(example(), Granularity::kChannel);
}

at::Tensor tensor_named(TrainableModel& net, const std::string& name) {
  for (const auto& [own, tensor] : net.parameters()) {
    if (own == name) return tensor;
  }
  return {};
}

void clear_gradients(TrainableModel& net) {
  for (auto& [name, parameter] : net.parameters()) parameter.mutable_grad().reset();
}

/// conv1 -> norm -> conv2 -> fc of the small network: two groups, of 8 and of 12 channels.
TEST(ParameterGroups, AreTheSlicesOfEveryMember) {
  for (const char* kind : {"live", "onnx", "script"}) {
    const test::TemporaryFolder folder;
    const std::unique_ptr<TrainableModel> net = test::small_net(kind, folder)();
    const std::vector<ParameterGroup> groups = groups_of(*net);
    ASSERT_EQ(groups.size(), 2U) << kind;
    EXPECT_EQ(groups[0].channels, 8) << kind;
    EXPECT_EQ(groups[1].channels, 12) << kind;
    size_t scales = 0;
    for (const ParameterSlices& slices : groups[0].slices) scales += slices.scale ? 1 : 0;
    EXPECT_EQ(scales, 1U) << kind;
    for (const ParameterSlices& slices : groups[1].slices) EXPECT_FALSE(slices.scale) << kind;
  }
}

TEST(ParameterGroups, NormsAreThoseOfAllMembers) {
  const std::unique_ptr<TrainableModel> net = test::live_small_net()();
  const at::Tensor norms = squared_norms(groups_of(*net)[0]);
  const auto sum_but = [](const at::Tensor& w, int64_t axis) {
    return w.detach().to(at::kDouble).square().transpose(0, axis).flatten(1).sum(1);
  };
  at::Tensor requested = sum_but(tensor_named(*net, "conv1.weight"), 0);
  requested += sum_but(tensor_named(*net, "conv2.weight"), 1);
  for (const char* vector : {"conv1.bias", "norm.weight", "norm.bias"}) {
    requested += tensor_named(*net, vector).detach().to(at::kDouble).square();
  }
  EXPECT_TRUE(at::allclose(norms, requested, 1e-5, 1e-7)) << norms << requested;
}

/// The gradient is that of the value, the strengths held fixed.
TEST(Penalty, GradientIsThatOfItsValue) {
  for (const PenaltySettings settings :
       {PenaltySettings{.slimming = 0.3, .group = 0}, PenaltySettings{.slimming = 0, .group = 0.2},
        PenaltySettings{.slimming = 0.1, .group = 0.4}}) {
    const std::unique_ptr<TrainableModel> net = test::live_small_net()();
    clear_gradients(*net);
    Penalty penalty(settings, groups_of(*net));
    penalty.add_gradients();
    for (const char* name : {"conv1.weight", "norm.weight", "conv2.weight", "fc.weight"}) {
      const at::Tensor parameter = tensor_named(*net, name);
      at::Tensor flat = parameter.detach().view({-1});
      const auto at = flat.numel() / 2;
      const float before = flat[at].item<float>();
      constexpr float kStep = 1e-2F;
      flat[at] = before + kStep;
      const double above = penalty.value();
      flat[at] = before - kStep;
      const double below = penalty.value();
      flat[at] = before;
      const double gradient =
          parameter.grad().defined() ? parameter.grad().reshape({-1})[at].item<double>() : 0;
      EXPECT_NEAR(gradient, (above - below) / (2 * static_cast<double>(kStep)), 1e-4) << name;
    }
  }
}

TEST(Penalty, SlimmingIsTheSumOfScales) {
  const std::unique_ptr<TrainableModel> net = test::live_small_net()();
  const Penalty penalty({.slimming = 0.5, .group = 0}, groups_of(*net));
  EXPECT_NEAR(penalty.value(), 0.5 * 8, 1e-6);  // γ begin at 1
}

TEST(Penalty, WeakChannelsArePushedHarder) {
  const std::unique_ptr<TrainableModel> net = test::live_small_net()();
  ParameterGroup group;
  group.channels = 3;
  at::Tensor w = at::tensor({3.0F, 2.0F, 1.0F}).view({3, 1}).requires_grad_();
  group.slices.push_back({"w", w, 0, Role::kOut, false, at::arange(3), at::arange(3)});
  const Penalty penalty({.slimming = 0, .group = 1}, {group});
  penalty.add_gradients();
  // I = 9, 4, 1: strengths 2^0, 2^(4·5/8), 2^4
  EXPECT_NEAR(w.grad()[0].item<float>(), 3, 1e-5);
  EXPECT_NEAR(w.grad()[1].item<float>(), 2 * std::exp2(2.5), 1e-4);
  EXPECT_NEAR(w.grad()[2].item<float>(), 16, 1e-4);
}

}  // namespace
}  // namespace parsimony::training
