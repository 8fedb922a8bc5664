#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <optional>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "parsimony/training/loop/optimizer.h"

namespace parsimony::training {

namespace {

namespace optim = torch::optim;

/// A single group of parameters, as of a recipe's optimizers.
struct Lists {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
};

Lists with_gradients(optim::OptimizerParamGroup& group) {
  Lists lists;
  for (const at::Tensor& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    lists.parameters.push_back(parameter);
    lists.gradients.push_back(parameter.grad());
  }
  return lists;
}

/// Returns a parameter's state in the optimizer, created if necessary.
template <typename State>
State& state_of(optim::Optimizer& optimizer, const at::Tensor& parameter) {
  auto& state = optimizer.state()[parameter.unsafeGetTensorImpl()];
  if (!state) state = std::make_unique<State>();
  return static_cast<State&>(*state);
}

std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

class Fused : public FusedStep {
 public:
  explicit Fused(optim::Optimizer& optimizer)
      : optimizer_(optimizer),
        rate_(at::zeros({}, at::TensorOptions(at::kFloat).device(device_of(optimizer)))) {}

  void set_rate(double rate) override { rate_.fill_(rate); }

 protected:
  static c10::Device device_of(optim::Optimizer& optimizer) {
    return optimizer.param_groups().front().params().front().device();
  }
  optim::OptimizerParamGroup& group() { return optimizer_.param_groups().front(); }

  optim::Optimizer& optimizer_;
  at::Tensor rate_;
};

class FusedSgd final : public Fused {
 public:
  using Fused::Fused;

  void step(const at::Tensor& overflow) override {
    const at::NoGradGuard no_grad;
    const auto& options = static_cast<const optim::SGDOptions&>(group().options());
    const Lists lists = with_gradients(group());
    std::vector<at::Tensor> momenta;
    for (const at::Tensor& parameter : lists.parameters) {
      if (options.momentum() == 0) break;
      at::Tensor& momentum =
          state_of<optim::SGDParamState>(optimizer_, parameter).momentum_buffer();
      // A first step from zeros equals libtorch's, which begins with the gradient, since there is
      // no dampening.
      if (!momentum.defined()) momentum = at::zeros_like(parameter);
      momenta.push_back(momentum);
    }
    if (lists.parameters.empty()) return;
    at::_fused_sgd_(lists.parameters, lists.gradients, momenta, options.weight_decay(),
                    options.momentum(), rate_, options.dampening(), options.nesterov(),
                    /*maximize=*/false, /*is_first_step=*/false, {}, if_defined(overflow));
  }

  void write_back_counts() override {}
};

template <typename Options, typename State>
class FusedAdam final : public Fused {
 public:
  using Fused::Fused;

  void step(const at::Tensor& overflow) override {
    const at::NoGradGuard no_grad;
    const auto& options = static_cast<const Options&>(group().options());
    const Lists lists = with_gradients(group());
    if (lists.parameters.empty()) return;
    std::vector<at::Tensor> means;
    std::vector<at::Tensor> squares;
    std::vector<at::Tensor> steps;
    for (const at::Tensor& parameter : lists.parameters) {
      State& state = state_of<State>(optimizer_, parameter);
      if (!state.exp_avg().defined()) {
        state.exp_avg(at::zeros_like(parameter)).exp_avg_sq(at::zeros_like(parameter));
      }
      means.push_back(state.exp_avg());
      squares.push_back(state.exp_avg_sq());
      at::Tensor& taken = steps_[parameter.unsafeGetTensorImpl()];
      if (!taken.defined()) taken = at::full_like(rate_, static_cast<double>(state.step()));
      steps.push_back(taken);
    }
    const at::Tensor one = at::ones_like(rate_);
    at::_foreach_add_(steps, overflow.defined() ? one - overflow : one);
    const auto [beta1, beta2] = options.betas();
    const auto apply = std::is_same_v<Options, optim::AdamWOptions> ? fused_adamw : fused_adam;
    apply(lists.parameters, lists.gradients, means, squares, {}, steps, rate_, beta1, beta2,
          options.weight_decay(), options.eps(), /*amsgrad=*/false, /*maximize=*/false, {},
          if_defined(overflow));
  }

  void write_back_counts() override {
    std::vector<at::Tensor> counts;
    for (const auto& [parameter, taken] : steps_) counts.push_back(taken);
    if (counts.empty()) return;
    const at::Tensor all = at::stack(counts).cpu();
    const float* count = all.const_data_ptr<float>();
    for (const auto& [parameter, taken] : steps_) {
      auto& state = optimizer_.state().at(parameter);
      static_cast<State&>(*state).step(static_cast<int64_t>(*count++));
    }
  }

 private:
  using Kernel = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                          at::TensorList, at::TensorList, const at::Tensor&, double, double, double,
                          double, bool, bool, const std::optional<at::Tensor>&,
                          const std::optional<at::Tensor>&);
  static constexpr Kernel fused_adam = at::_fused_adam_;
  static constexpr Kernel fused_adamw = at::_fused_adamw_;

  /// Steps taken with each parameter; a count in float32 is exact up to 2^24.
  std::unordered_map<c10::TensorImpl*, at::Tensor> steps_;
};

}  // namespace

std::unique_ptr<FusedStep> FusedStep::of(optim::Optimizer& optimizer) {
  if (optimizer.param_groups().size() != 1 || optimizer.param_groups().front().params().empty()) {
    return nullptr;
  }
  const std::type_info& type = typeid(optimizer);
  if (type == typeid(optim::SGD)) return std::make_unique<FusedSgd>(optimizer);
  if (type == typeid(optim::Adam)) {
    return std::make_unique<FusedAdam<optim::AdamOptions, optim::AdamParamState>>(optimizer);
  }
  if (type == typeid(optim::AdamW)) {
    return std::make_unique<FusedAdam<optim::AdamWOptions, optim::AdamWParamState>>(optimizer);
  }
  return nullptr;
}

}  // namespace parsimony::training
