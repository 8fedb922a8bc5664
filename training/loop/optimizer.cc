#include "parsimony/training/loop/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

namespace parsimony::training {
namespace {

namespace optim = torch::optim;

constexpr double kSmallestNorm = 1e-7;
constexpr double kSmallestRms = 1e-3;

bool is_matrix(const at::Tensor& parameter) {
  const bool depthwise = parameter.dim() > 2 && parameter.size(1) == 1;
  return parameter.dim() >= 2 && parameter.numel() > 0 && !depthwise;
}

at::Tensor relative_step(const at::Tensor& parameter, const at::Tensor& direction) {
  const at::Tensor turned = orthogonalised(direction.flatten(1));
  const double smallest = kSmallestRms * std::sqrt(static_cast<double>(parameter.numel()));
  const at::Tensor length = parameter.norm().clamp_min(smallest);
  return (turned * (length / turned.norm().clamp_min(kSmallestNorm))).view_as(parameter);
}

/// Interpolates from `from` at 0 to `to` at 1, along half a cosine.
double eased(double from, double to, double at) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * at));
}

double one_cycle(double highest, double at) {
  constexpr double kRise = 0.3;
  const double first = highest / 25;
  const double last = first / 10'000;
  return at < kRise ? eased(first, highest, at / kRise)
                    : eased(highest, last, (at - kRise) / (1 - kRise));
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(std::vector<at::Tensor> parameters,
                                                        const TrainSettings& settings) {
  using namespace optim;
  const double decay = settings.weight_decay;
  const auto sgd = SGDOptions(settings.lr).momentum(settings.momentum).weight_decay(decay);
  switch (settings.optimizer) {
    case OptimizerKind::kAdam:
      return std::make_unique<Adam>(std::move(parameters),
                                    AdamOptions(settings.lr).weight_decay(decay));
    case OptimizerKind::kAdamW:
      return std::make_unique<AdamW>(std::move(parameters),
                                     AdamWOptions(settings.lr).weight_decay(decay));
    case OptimizerKind::kMuon:
      return std::make_unique<Muon>(std::move(parameters), sgd);
    case OptimizerKind::kSgd:
      break;
  }
  return std::make_unique<SGD>(std::move(parameters), sgd);
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate,
                       const std::vector<double>& scales) {
  std::vector<optim::OptimizerParamGroup>& groups = optimizer.param_groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    groups[g].options().set_lr(scales.empty() ? rate : rate * scales[g]);
  }
}

RelativeSteps relative_adam(const std::vector<at::Tensor>& parameters) {
  RelativeSteps steps;
  std::vector<optim::OptimizerParamGroup> groups;
  for (const at::Tensor& parameter : parameters) {
    const double size = parameter.detach().square().mean().sqrt().item<double>();
    steps.sizes.push_back(std::max(size, kSmallestRms));
    groups.emplace_back(std::vector<at::Tensor>{parameter});
  }
  steps.optimizer = std::make_unique<optim::Adam>(std::move(groups));
  return steps;
}

at::Tensor orthogonalised(const at::Tensor& matrix) {
  // Newton-Schulz iterations x <- a x + b (x xᵀ) x + c (x xᵀ)² x, with the published factors.
  constexpr double kA = 3.4445;
  constexpr double kB = -4.7750;
  constexpr double kC = 2.0315;
  constexpr int kIterations = 5;
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  x = x / x.norm().clamp_min(kSmallestNorm);
  for (int i = 0; i < kIterations; ++i) {
    const at::Tensor square = x.mm(x.t());
    x = kA * x + (kB * square + kC * square.mm(square)).mm(x);
  }
  return tall ? x.t().contiguous() : x;
}

at::Tensor Muon::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) loss = closure();
  const at::NoGradGuard no_grad;
  for (optim::OptimizerParamGroup& group : param_groups()) {
    const auto& options = static_cast<const optim::SGDOptions&>(group.options());
    for (at::Tensor& parameter : group.params()) {
      const at::Tensor& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      auto& state = state_[parameter.unsafeGetTensorImpl()];
      if (!state) state = std::make_unique<optim::SGDParamState>();
      at::Tensor& momentum = static_cast<optim::SGDParamState&>(*state).momentum_buffer();
      if (!momentum.defined()) momentum = at::zeros_like(gradient);
      momentum.mul_(options.momentum()).add_(gradient);
      const at::Tensor direction = gradient + options.momentum() * momentum;
      parameter.mul_(1 - options.lr() * options.weight_decay());
      parameter.sub_(is_matrix(parameter) ? relative_step(parameter, direction) : direction,
                     options.lr());
    }
  }
  return loss;
}

double learning_rate(const TrainSettings& settings, int64_t step, int64_t steps) {
  const double at = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, steps));
  switch (settings.schedule) {
    case RateSchedule::kConstant:
      return settings.lr;
    case RateSchedule::kCosine:
      return eased(settings.lr, 0, at);
    case RateSchedule::kStep: {
      const int64_t epoch = step * settings.epochs / std::max<int64_t>(1, steps);
      const int64_t drops = epoch / settings.step_epochs;
      return settings.lr * std::pow(settings.step_factor, static_cast<double>(drops));
    }
    case RateSchedule::kOneCycle:
      return one_cycle(settings.lr, at);
  }
  return settings.lr;
}

}  // namespace parsimony::training
