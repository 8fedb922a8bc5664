#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "parsimony/training/loader/device_scaling_impl.h"

namespace parsimony::training {
namespace {

at::Tensor per_channel(const std::vector<float>& values, size_t dims, c10::Device device) {
  Shape shape(dims + 1, 1);
  shape[1] = static_cast<int64_t>(values.size());
  return at::tensor(values).reshape(shape).to(device);
}

}  // namespace

DeviceScaling::DeviceScaling(const Gatherer& gatherer, size_t dims, const LoaderOptions& options)
    : factors_(per_channel(gatherer.factors(), dims, options.device)),
      offsets_(per_channel(gatherer.offsets(), dims, options.device)),
      dtype_(options.dtype),
      format_(options.channels_last ? c10::MemoryFormat::ChannelsLast
                                    : c10::MemoryFormat::Contiguous) {}

at::Tensor DeviceScaling::operator()(const at::Tensor& stored) const {
  const at::NoGradGuard no_grad;
  const at::Tensor inputs = stored.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  inputs.mul_(factors_).add_(offsets_);
  return inputs.to(dtype_, /*non_blocking=*/false, /*copy=*/false, format_);
}

}  // namespace parsimony::training
