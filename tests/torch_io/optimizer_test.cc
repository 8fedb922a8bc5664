// After surgery an optimizer takes the step that it would take on the masked network.

#include "parsimony/torch_io/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <torch/optim.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "parsimony/torch_io/prune.h"
#include "tests/torch_io/live_editing.h"

namespace parsimony::torch_io {
namespace {

namespace nn = torch::nn;
namespace optim = torch::optim;

struct StatefulNetImpl : nn::Module {
  StatefulNetImpl() {
    register_module("a", a);
    register_module("norm", norm);
    register_module("b", b);
    register_module("fc", fc);
    // In single precision the bias before the normalization has a gradient of mere rounding
    // noise, which Adam scales up to a full step.
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) { return fc(b(norm(a(x)).relu()).flatten(1)); }
  nn::Conv2d a{nn::Conv2dOptions(3, 8, 3)};
  nn::BatchNorm2d norm{8};
  nn::Conv2d b{nn::Conv2dOptions(8, 6, 3)};
  nn::Linear fc{6 * 4, 5};
};
TORCH_MODULE(StatefulNet);

using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<at::Tensor>)>;

std::vector<int64_t> times_four(const std::vector<int64_t>& channels) {
  std::vector<int64_t> result;
  for (const int64_t channel : channels) {
    for (int64_t i = 0; i < 4; ++i) result.push_back(4 * channel + i);
  }
  return result;
}

Plan plan_of(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
  Plan plan;
  plan.groups.resize(2);
  for (const char* tensor : {"a.weight", "a.bias", "norm.weight", "norm.bias", "norm.running_mean",
                             "norm.running_var"}) {
    plan.groups[0].slices.push_back({tensor, 0, Role::kOut, 8, first});
  }
  plan.groups[0].slices.push_back({"b.weight", 1, Role::kIn, 8, first});
  plan.groups[1].slices.push_back({"b.weight", 0, Role::kOut, 6, second});
  plan.groups[1].slices.push_back({"b.bias", 0, Role::kOut, 6, second});
  plan.groups[1].slices.push_back({"fc.weight", 1, Role::kIn, 24, times_four(second)});
  return plan;
}

void train_step(StatefulNet& net, optim::Optimizer& optimizer, const Plan* mask = nullptr) {
  const at::Tensor x = at::randn({4, 3, 6, 6}, at::kDouble);
  const at::Tensor y = at::randn({4, 5}, at::kDouble);
  optimizer.zero_grad();
  at::mse_loss(net->forward(x), y).backward();
  if (mask != nullptr) {
    const auto parameters = net->named_parameters();
    for (const PlanGroup& group : mask->groups) {
      for (const PlanSlice& slice : group.slices) {
        const at::Tensor* p = parameters.find(slice.tensor);
        if (p != nullptr) p->mutable_grad() = masked(p->grad(), slice.axis, slice.keep);
      }
    }
  }
  optimizer.step();
}

void zero_what_goes(StatefulNet& net, const Plan& plan) {
  const at::NoGradGuard no_grad;
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) {
      const auto parameters = net->named_parameters();
      const at::Tensor* p = parameters.find(slice.tensor);
      if (p != nullptr) p->set_data(masked(*p, slice.axis, slice.keep));
    }
  }
}

/// Two networks and optimizers of one past.
struct Twin {
  explicit Twin(const Make& make) {
    at::manual_seed(7);
    net = StatefulNet();
    optimizer = make(net->parameters());
    for (int i = 0; i < 3; ++i) train_step(net, *optimizer);
  }
  StatefulNet net{nullptr};
  std::unique_ptr<optim::Optimizer> optimizer;
};

void expect_same_step(const std::string& name, const Make& make, const Plan& plan,
                      int cut_tensors) {
  SCOPED_TRACE(name);
  Twin masked_net(make);
  Twin pruned(make);
  zero_what_goes(masked_net.net, plan);
  restore(*pruned.net, plan);
  EXPECT_EQ(carry_over(*pruned.optimizer, plan, *pruned.net).tensors, cut_tensors);
  EXPECT_EQ(carry_over(*pruned.optimizer, plan, *pruned.net).tensors, 0) << "a second time";
  at::manual_seed(11);
  train_step(masked_net.net, *masked_net.optimizer, &plan);
  at::manual_seed(11);
  train_step(pruned.net, *pruned.optimizer);
  restore(*masked_net.net, plan);
  const auto expected = masked_net.net->named_parameters();
  for (const auto& p : pruned.net->named_parameters()) {
    EXPECT_TRUE(at::allclose(p.value(), expected[p.key()], 0, 1e-6)) << p.key();
  }
}

template <typename Optimizer, typename Options>
Make make(const Options& options) {
  return [options](std::vector<at::Tensor> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

TEST(CarryOver, TheNextStepIsThatOfTheMaskedNetwork) {
  struct Case {
    std::string name;
    Make make;
    int tensors;  // of a parameter's state
  };
  const std::vector<Case> cases = {
      {"SGD", make<optim::SGD>(optim::SGDOptions(0.05).weight_decay(0.01)), 0},
      {"SGD momentum", make<optim::SGD>(optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01)),
       1},
      {"SGD nesterov", make<optim::SGD>(optim::SGDOptions(0.05).momentum(0.9).nesterov(true)), 1},
      {"Adam", make<optim::Adam>(optim::AdamOptions(0.01).weight_decay(0.01)), 2},
      {"Adam amsgrad", make<optim::Adam>(optim::AdamOptions(0.01).weight_decay(0.01).amsgrad(true)),
       3},
      {"AdamW", make<optim::AdamW>(optim::AdamWOptions(0.01).weight_decay(0.1)), 2},
      {"AdamW amsgrad", make<optim::AdamW>(optim::AdamWOptions(0.01).amsgrad(true)), 3},
      {"RMSprop", make<optim::RMSprop>(optim::RMSpropOptions(0.01).weight_decay(0.01)), 1},
      {"RMSprop centered with momentum",
       make<optim::RMSprop>(
           optim::RMSpropOptions(0.01).momentum(0.9).centered(true).weight_decay(0.01)),
       3},
      {"Adagrad", make<optim::Adagrad>(optim::AdagradOptions(0.01).weight_decay(0.01)), 1},
  };
  const std::vector<Plan> plans = {plan_of({0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 5}),
                                   plan_of({1, 2, 6, 7}, {0, 1, 2, 3, 4, 5}),
                                   plan_of({0, 3, 4}, {1, 5})};
  const std::vector<int> parameters_cut = {3, 5, 7};  // of b and fc; of a, norm and b; of all
  for (const Case& one : cases) {
    for (size_t i = 0; i < plans.size(); ++i) {
      expect_same_step(one.name, one.make, plans[i], parameters_cut[i] * one.tensors);
    }
  }
}

TEST(CarryOver, CountsAndOptionsStay) {
  Twin twin(make<optim::Adam>(optim::AdamOptions(0.02).eps(1e-7)));
  const Plan plan = plan_of({0, 3, 4}, {1, 5});
  restore(*twin.net, plan);
  carry_over(*twin.optimizer, plan, *twin.net);
  for (const auto& entry : twin.optimizer->state()) {
    EXPECT_EQ(static_cast<const optim::AdamParamState&>(*entry.second).step(), 3);
  }
  const auto& options =
      static_cast<const optim::AdamOptions&>(twin.optimizer->param_groups()[0].options());
  EXPECT_EQ(options.lr(), 0.02);
  EXPECT_EQ(options.eps(), 1e-7);
}

TEST(CarryOver, StateThatFitsNeitherIsRefusedAndNothingChanges) {
  Twin twin(make<optim::SGD>(optim::SGDOptions(0.05).momentum(0.9)));
  restore(*twin.net, plan_of({0, 3, 4}, {1, 5}));
  const Plan other = plan_of({0, 3, 4}, {1, 2, 5});
  EXPECT_EQ(message_of<ModelError>([&] { carry_over(*twin.optimizer, other, *twin.net); }),
            "parameter \"b.weight\": the optimizer's state has shape [6, 8, 3, 3], which neither "
            "matches the parameter's [2, 3, 3, 3] nor does so after slicing");
  for (const auto& entry : twin.optimizer->state()) {
    const auto& state = static_cast<const optim::SGDParamState&>(*entry.second);
    EXPECT_NE(state.momentum_buffer().size(0), 3) << "cut before the fault was found";
  }
}

TEST(CarryOver, LbfgsStartsAfresh) {
  StatefulNet net;
  optim::LBFGS lbfgs(net->parameters(), optim::LBFGSOptions(0.1).max_iter(3));
  const at::Tensor x = at::randn({4, 3, 6, 6}, at::kDouble);
  const auto closure = [&] {
    lbfgs.zero_grad();
    at::Tensor loss = net->forward(x).square().mean();
    loss.backward();
    return loss;
  };
  lbfgs.step(closure);
  const Plan plan = plan_of({0, 3, 4}, {1, 5});
  restore(*net, plan);
  EXPECT_EQ(carry_over(lbfgs, plan, *net).notes.size(), 1U);
  EXPECT_TRUE(lbfgs.state().empty());
  EXPECT_TRUE(carry_over(lbfgs, plan, *net).notes.empty());
  const double before = closure().item<double>();
  lbfgs.step(closure);
  EXPECT_LT(closure().item<double>(), before);
  EXPECT_EQ(static_cast<const optim::LBFGSOptions&>(lbfgs.param_groups()[0].options()).lr(), 0.1);
  EXPECT_TRUE(carry_over(lbfgs, plan, *net).notes.empty()) << "its state is of the new size";
}

class OwnOptimizer : public optim::Optimizer {
 public:
  explicit OwnOptimizer(const std::vector<at::Tensor>& parameters)
      : Optimizer(parameters, std::make_unique<optim::SGDOptions>(0.1)) {}
  at::Tensor step(LossClosure) override { return {}; }
};

TEST(CarryOver, OptimizersOfUnknownTypeMayHaveNoState) {
  StatefulNet net;
  OwnOptimizer own(net->parameters());
  const Plan plan = plan_of({0, 3, 4}, {1, 5});
  restore(*net, plan);
  EXPECT_TRUE(carry_over(own, plan, *net).notes.empty());
  own.state()[net->a->weight.unsafeGetTensorImpl()] = std::make_unique<optim::SGDParamState>();
  EXPECT_EQ(message_of<UnsupportedError>([&] { carry_over(own, plan, *net); }),
            "unsupported optimizer type; supported are SGD, Adam, AdamW, "
            "RMSprop, Adagrad and LBFGS");
}

TEST(CarryOver, ReplacedParametersTakeOverTheirState) {
  Twin twin(make<optim::Adam>(optim::AdamOptions(0.01)));
  at::Tensor before = twin.net->fc->weight;
  at::Tensor after = select(before, 0, {0, 4}).clone().set_requires_grad(true);
  const std::vector<ReplacedParameter> replaced = {{"fc.weight", before, after, {{0, 5, {0, 4}}}}};
  EXPECT_EQ(carry_over(*twin.optimizer, replaced).tensors, 2);
  const auto& held = twin.optimizer->param_groups()[0].params();
  EXPECT_TRUE(std::any_of(held.begin(), held.end(),
                          [&](const at::Tensor& one) { return one.is_same(after); }));
  const auto& states = twin.optimizer->state();
  EXPECT_EQ(states.count(before.unsafeGetTensorImpl()), 0U);
  const auto state = states.find(after.unsafeGetTensorImpl());
  ASSERT_NE(state, states.end());
  EXPECT_EQ(static_cast<const optim::AdamParamState&>(*state->second).exp_avg().size(0), 2);
  EXPECT_EQ(message_of<ModelError>([&] { carry_over(*twin.optimizer, replaced); }),
            "parameter \"fc.weight\": the optimizer does not have it");
}

TEST(CarryOver, AnOptimizerOfAnotherModuleIsSaid) {
  StatefulNet net;
  StatefulNet other;
  optim::SGD sgd(other->parameters(), optim::SGDOptions(0.1));
  EXPECT_EQ(carry_over(sgd, Plan(), *net).notes.size(), 1U);
}

}  // namespace
}  // namespace parsimony::torch_io
