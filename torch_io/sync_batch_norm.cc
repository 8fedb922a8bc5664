#include "parsimony/torch_io/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/ops/batch_norm_native.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace parsimony::torch_io {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local const SyncBatchNorm::Sum* current = nullptr;

/// On the CPU, in double.
struct Moments {
  at::Tensor mean;
  at::Tensor variance;
  double count = 0;  ///< values per channel
};

Moments moments_of_all(const at::Tensor& x) {
  const int64_t channels = x.size(1);
  const at::Tensor sums = at::empty({2 * channels + 1}, at::kDouble);
  const at::Tensor means = sums.narrow(0, 0, channels);
  const at::Tensor others = sums.narrow(0, channels, channels);
  // What BatchNorm itself has for this reads x as it lies in memory; it takes no half precision.
  const auto [mean, variance] =
      at::batch_norm_update_stats(x.element_size() < 4 ? x.to(at::kFloat) : x, {}, {}, 0);
  means.copy_(mean);
  others.copy_(variance);
  const auto own = static_cast<double>(x.numel() / std::max<int64_t>(1, channels));
  if (current == nullptr) return {means, others, own};
  auto* const first = sums.data_ptr<double>();
  double* const second = first + channels;
  double& count = second[channels];
  for (int64_t c = 0; c < channels; ++c) {
    second[c] = (second[c] + first[c] * first[c]) * own;
    first[c] *= own;
  }
  count = own;
  (*current)(sums);
  for (int64_t c = 0; c < channels; ++c) {
    first[c] /= count;
    second[c] = std::max(0.0, second[c] / count - first[c] * first[c]);
  }
  return {means, others, count};
}

/// Values of each channel.
struct Affine {
  at::Tensor scale;
  at::Tensor slope;
  at::Tensor offset;
};

/// Returns scale · dy − slope · x − offset in one pass, where ATen takes one for each term;
/// `channel` is the distance between the elements of a channel's neighbours.
void combine(const float* dy, const float* x, const Affine& by, int64_t channels, int64_t count,
             int64_t channel, float* dx) {
  const float* const scale = by.scale.data_ptr<float>();
  const float* const slope = by.slope.data_ptr<float>();
  const float* const offset = by.offset.data_ptr<float>();
  if (channel == 1) {
    for (int64_t i = 0; i < count; i += channels) {
      for (int64_t c = 0; c < channels; ++c) {
        dx[i + c] = scale[c] * dy[i + c] - slope[c] * x[i + c] - offset[c];
      }
    }
    return;
  }
  for (int64_t plane = 0; plane * channel < count; ++plane) {
    const int64_t c = plane % channels;
    for (int64_t i = plane * channel; i < (plane + 1) * channel; ++i) {
      dx[i] = scale[c] * dy[i] - slope[c] * x[i] - offset[c];
    }
  }
}

/// @param dy  lies in memory as x, if that is contiguous in its format
at::Tensor combined(const at::Tensor& dy, const at::Tensor& x, const Affine& by) {
  const at::MemoryFormat format = x.suggest_memory_format();
  const auto is_float = [](const at::Tensor& t) { return t.scalar_type() == at::kFloat; };
  if (x.device().is_cpu() && is_float(x) && is_float(dy) && is_float(by.scale) &&
      x.is_contiguous(format)) {
    at::Tensor dx = at::empty_like(x);
    const int64_t channels = x.size(1);
    const int64_t channel = format == at::MemoryFormat::Contiguous
                                ? x.numel() / std::max<int64_t>(1, x.size(0) * channels)
                                : 1;
    combine(dy.data_ptr<float>(), x.data_ptr<float>(), by, channels, x.numel(), channel,
            dx.data_ptr<float>());
    return dx;
  }
  std::vector<int64_t> shape(x.dim(), 1);
  shape[1] = x.size(1);
  const at::Tensor dx =
      dy * by.scale.reshape(shape) - x * by.slope.reshape(shape) - by.offset.reshape(shape);
  return dx.to(x.scalar_type());  // half precision is rounded once
}

/// Computes y, mean, 1 / √(variance + ε) and the unbiased variance, over all processes.
struct Synced : torch::autograd::Function<Synced> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
    const Moments all = moments_of_all(x);
    const at::Tensor mean = all.mean.to(weight.options());
    const at::Tensor variance = all.variance.to(weight.options());
    at::Tensor y = std::get<0>(
        at::native_batch_norm(x, weight, bias, mean, variance, /*training=*/false, 0, epsilon));
    const at::Tensor inverse = (variance + epsilon).rsqrt();
    context->save_for_backward({x, weight, mean, variance, inverse});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["count"] = all.count;
    context->saved_data["sum"] = reinterpret_cast<int64_t>(current);
    const at::Tensor unbiased = variance * (all.count / std::max(1.0, all.count - 1));
    context->mark_non_differentiable({mean, inverse, unbiased});
    return {std::move(y), mean, inverse, unbiased};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& mean = saved[2];
    const at::Tensor& inverse = saved[4];
    const at::Tensor of_y = gradients[0].contiguous(x.suggest_memory_format());
    const auto [none, of_weight, of_bias] = at::native_batch_norm_backward(
        of_y, x, weight, mean, saved[3], {}, {}, /*train=*/false,
        context->saved_data["epsilon"].toDouble(), {false, true, true});
    const at::Tensor sums = at::cat({of_bias, of_weight}).to(at::kCPU, at::kDouble);
    (*reinterpret_cast<const SyncBatchNorm::Sum*>(context->saved_data["sum"].toInt()))(sums);
    const at::Tensor means = (sums / context->saved_data["count"].toDouble()).to(weight.options());
    const int64_t channels = x.size(1);
    Affine by;
    by.scale = weight * inverse;
    by.slope = by.scale * inverse * means.narrow(0, channels, channels);
    by.offset = by.scale * means.narrow(0, 0, channels) - by.slope * mean;
    return {combined(of_y, x, by), of_weight, of_bias, at::Tensor()};
  }
};

using Optional = c10::optional<at::Tensor>;

at::Tensor given_or(const Optional& tensor, const at::Tensor& other) {
  return tensor && tensor->defined() ? *tensor : other;
}

/// aten::batch_norm, which modules and scripts call.
at::Tensor batch_norm(const at::Tensor& x, const Optional& weight, const Optional& bias,
                      const Optional& running_mean, const Optional& running_variance, bool training,
                      double momentum, double epsilon, bool cudnn) {
  if (current == nullptr || !training) {
    return at::native::batch_norm(x, weight, bias, running_mean, running_variance, training,
                                  momentum, epsilon, cudnn);
  }
  const auto wide = at::TensorOptions(at::kFloat).device(x.device());
  const variable_list found = Synced::apply(x, given_or(weight, at::ones({x.size(1)}, wide)),
                                            given_or(bias, at::zeros({x.size(1)}, wide)), epsilon);
  const at::NoGradGuard no_grad;
  const auto follow = [&](const Optional& running, const at::Tensor& now) {
    if (running && running->defined()) running->lerp_(now.to(running->scalar_type()), momentum);
  };
  follow(running_mean, found[1]);
  follow(running_variance, found[3]);
  return found[0];
}

TORCH_LIBRARY_IMPL(aten, AutogradCPU, library) { library.impl("batch_norm", batch_norm); }
TORCH_LIBRARY_IMPL(aten, AutogradCUDA, library) { library.impl("batch_norm", batch_norm); }

}  // namespace

SyncBatchNorm::SyncBatchNorm(Sum sum) : sum_(std::move(sum)), outer_(current) {
  current = sum_ ? &sum_ : nullptr;
}

SyncBatchNorm::~SyncBatchNorm() { current = outer_; }

std::tuple<at::Tensor, at::Tensor> channel_moments(const at::Tensor& x) {
  const Moments all = moments_of_all(x);
  return {all.mean, all.variance};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_normalised(const at::Tensor& x,
                                                                const at::Tensor& weight,
                                                                const at::Tensor& bias,
                                                                double epsilon) {
  if (current == nullptr) {
    return at::native_batch_norm(x, weight, bias, {}, {}, /*training=*/true, 0, epsilon);
  }
  const variable_list found = Synced::apply(x, weight, bias, epsilon);
  return {found[0], found[1], found[2]};
}

}  // namespace parsimony::torch_io
