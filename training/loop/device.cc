#include "parsimony/training/loop/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include "parsimony/base/errors.h"

namespace parsimony::training {
namespace {

ConfigError bad_device(std::string_view device) {
  return ConfigError("--device ", in_quotes(device), ": expected auto, cpu or cuda:N");
}

}  // namespace

c10::Device parse_device(const std::string& text) {
  if (text == "auto") return {at::hasCUDA() ? c10::kCUDA : c10::kCPU};
  try {
    const c10::Device device(text);
    if (device.is_cuda() && !at::hasCUDA()) {
      throw UnsupportedError("device ", in_quotes(text),
                             " is not available: libtorch finds no CUDA device");
    }
    if (!device.is_cuda() && !device.is_cpu()) throw bad_device(text);
    return device;
  } catch (const c10::Error&) {
    throw bad_device(text);
  }
}

void place(TrainedModule& module, c10::Device device, bool channels_last) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : all_tensors(module)) {
    at::Tensor placed = tensor.detach().to(device);
    if (placed.dim() == 4) {
      const auto format =
          channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
      // Strides of axes of size 1 as well: buckets of gradients have those of their parameters.
      placed = placed.contiguous(format);
      const at::Tensor laid_out = at::empty(placed.sizes(), placed.options(), format);
      placed = placed.as_strided(placed.sizes(), laid_out.strides());
    }
    at::Tensor(tensor).set_data(placed);
  }
}

void check_ranks(c10::Device device) {
  if (device.is_cpu()) return;
  throw UnsupportedError(
      "training with several processes requires the CPU (Gloo): pass --device cpu");
}

NoKernelTrials::NoKernelTrials() : before_(at::globalContext().benchmarkCuDNN()) {
  at::globalContext().setBenchmarkCuDNN(false);
}

NoKernelTrials::~NoKernelTrials() { at::globalContext().setBenchmarkCuDNN(before_); }

bool holds(c10::Device device, int64_t bytes) {
  constexpr int64_t kMost = int64_t{4} << 30;
  return device.is_cuda() && bytes <= kMost;
}

bool has_channels_last(MemoryFormat format, const Shape& sample, Precision precision,
                       c10::Device device) {
  if (format != MemoryFormat::kAuto) return format == MemoryFormat::kChannelsLast;
  const bool image = sample.size() == 3;
  return image && (device.is_cpu() || precision != Precision::kFloat32);
}

}  // namespace parsimony::training
