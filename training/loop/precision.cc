#include "parsimony/training/loop/precision.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "parsimony/torch_io/compat.h"
#include "parsimony/training/errors.h"

namespace parsimony::training {

Autocast::Autocast(Precision precision, c10::Device device)
    : on_(precision != Precision::kFloat32), cuda_(device.is_cuda()) {
  if (precision == Precision::kFloat16 && !cuda_) throw errors::half_needs_cuda();
  if (!on_) return;
  torch_io::compat::set_autocast(
      cuda_, precision == Precision::kFloat16 ? at::kHalf : at::kBFloat16, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  torch_io::compat::set_autocast(cuda_, at::kBFloat16, false);
}

at::Tensor GradientScaler::scaled(const at::Tensor& loss) const {
  return on_ ? at::mul(loss, scale_) : loss;
}

bool GradientScaler::unscale(const std::vector<at::Tensor>& parameters) {
  if (!on_) return true;
  constexpr int kGrowEvery = 2000;
  const at::NoGradGuard no_grad;
  at::Tensor finite;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    const at::Tensor& gradient = parameter.grad();
    gradient.mul_(1 / scale_);
    const at::Tensor own = at::isfinite(gradient).all();
    finite = finite.defined() ? finite.logical_and(own) : own;
  }
  if (finite.defined() && !finite.item<bool>()) {
    scale_ /= 2;
    good_steps_ = 0;
    return false;
  }
  if (++good_steps_ % kGrowEvery == 0) scale_ *= 2;
  return true;
}

}  // namespace parsimony::training
