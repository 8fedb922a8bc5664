#include "parsimony/training/loop/precision.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "parsimony/training/errors.h"

namespace parsimony::training {
namespace {

void set_autocast(bool cuda, at::ScalarType type, bool on) {
  const at::DeviceType device = cuda ? at::kCUDA : at::kCPU;
  at::autocast::set_autocast_dtype(device, type);
  at::autocast::set_autocast_enabled(device, on);
}

}  // namespace

Autocast::Autocast(Precision precision, c10::Device device)
    : on_(precision != Precision::kFloat32), cuda_(device.is_cuda()) {
  if (precision == Precision::kFloat16 && !cuda_) throw errors::half_needs_cuda();
  if (!on_) return;
  set_autocast(cuda_, precision == Precision::kFloat16 ? at::kHalf : at::kBFloat16, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  set_autocast(cuda_, at::kBFloat16, false);
}

GradientScaler::GradientScaler(Precision precision) : on_(precision == Precision::kFloat16) {
  take_up(65536, 0);
}

void GradientScaler::take_up(double scale, int64_t good_steps) {
  scale_ = at::full({}, scale, at::kFloat);
  good_steps_ = at::full({}, static_cast<double>(good_steps), at::kFloat);
}

double GradientScaler::scale() const { return scale_.item<float>(); }

int64_t GradientScaler::good_steps() const {
  return static_cast<int64_t>(good_steps_.item<float>());
}

at::Tensor GradientScaler::scaled(const at::Tensor& loss) {
  if (!on_) return loss;
  scale_ = scale_.to(loss.device());
  good_steps_ = good_steps_.to(loss.device());
  return at::mul(loss, scale_);
}

at::Tensor GradientScaler::unscale(const std::vector<at::Tensor>& parameters) {
  if (!on_) return {};
  constexpr double kGrowEvery = 2000;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  at::Tensor overflow = at::zeros_like(scale_);
  const at::Tensor factor = scale_.reciprocal();
  if (scale_.is_cuda()) {
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflow, factor);
  } else {
    for (const at::Tensor& gradient : gradients) {
      gradient.mul_(factor);
      overflow = at::maximum(overflow, at::isfinite(gradient).all().logical_not().to(at::kFloat));
    }
  }
  // In place: a recorded step expects them in the same memory.
  const at::Tensor skipped = overflow.ne(0);
  good_steps_.add_(1).masked_fill_(skipped, 0);
  const at::Tensor grows =
      good_steps_.remainder(kGrowEvery).eq(0).logical_and(skipped.logical_not());
  scale_.mul_(grows.to(at::kFloat) + 1).mul_(1 - skipped.to(at::kFloat) * 0.5);
  return overflow;
}

}  // namespace parsimony::training
