#include "parsimony/training/loop/penalty.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace parsimony::training {
namespace {

constexpr double kSpread = 4;  // strengths span 2^0 … 2^4

void add_to_gradient(const at::Tensor& parameter, const at::Tensor& gradient) {
  at::Tensor& own = at::Tensor(parameter).mutable_grad();
  if (own.defined()) {
    own.add_(gradient);
  } else {
    own = gradient.clone();
  }
}

/// 1 where a channel is, 0 elsewhere.
at::Tensor present(const ParameterSlices& slices, int64_t channels) {
  return slices.along(at::ones({channels}, slices.parameter.options().requires_grad(false)));
}

}  // namespace

at::Tensor squared_norms(const ParameterGroup& group) {
  const at::NoGradGuard no_grad;
  at::Tensor sums =
      at::zeros({group.channels},
                group.slices.front().parameter.options().dtype(at::kDouble).requires_grad(false));
  for (const ParameterSlices& slices : group.slices) {
    slices.add_sums(slices.parameter.detach().square(), sums);
  }
  return sums;
}

Penalty::Penalty(const PenaltySettings& settings, std::vector<ParameterGroup> groups)
    : settings_(settings), groups_(std::move(groups)) {
  begin_epoch();
}

void Penalty::begin_epoch() {
  strength_.clear();
  if (settings_.group == 0) return;
  for (const ParameterGroup& group : groups_) {
    const at::Tensor norms = squared_norms(group);
    const at::Tensor most = norms.max();
    const at::Tensor range = (most - norms.min()).clamp_min(1e-30);
    strength_.push_back(at::exp2((most - norms) / range * kSpread));
  }
}

void Penalty::add_gradients() const {
  const at::NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const ParameterSlices& slices : groups_[g].slices) {
      const at::Tensor values = slices.parameter.detach();
      if (settings_.slimming > 0 && slices.scale) {
        const at::Tensor there = present(slices, groups_[g].channels);
        add_to_gradient(slices.parameter, values.sign() * there * settings_.slimming);
      }
      if (settings_.group > 0) {
        const at::Tensor strength = slices.along(strength_[g].to(values.scalar_type()));
        add_to_gradient(slices.parameter, values * strength * settings_.group);
      }
    }
  }
}

double Penalty::value() const {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (settings_.group > 0) {
      const at::Tensor weighted = strength_[g] * squared_norms(groups_[g]);
      sum += settings_.group / 2 * weighted.sum().item<double>();
    }
    for (const ParameterSlices& slices : groups_[g].slices) {
      if (settings_.slimming == 0 || !slices.scale) continue;
      const at::Tensor there = present(slices, groups_[g].channels);
      sum += settings_.slimming * (slices.parameter.detach().abs() * there).sum().item<double>();
    }
  }
  return sum;
}

}  // namespace parsimony::training
