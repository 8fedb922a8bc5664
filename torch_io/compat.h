// Differences between libtorch 1.13 and 2.x. Nothing else depends on the version.
#pragma once

#include <ATen/autocast_mode.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/C++17.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#include <memory>
#include <string>
#include <utility>

namespace parsimony::torch_io {

/// Registers operators of newer versions that are composed of older ones, so that files that use
/// them can be read and run. Does nothing if libtorch has them or after the first call.
void add_newer_operators();

namespace compat {

#if TORCH_VERSION_MAJOR >= 2
/// The key of a tensor's state in an optimizer.
using StateKey = void*;
inline StateKey state_key(c10::TensorImpl* tensor) { return tensor; }
#else
using StateKey = std::string;
inline StateKey state_key(c10::TensorImpl* tensor) { return c10::guts::to_string(tensor); }
#endif

/// The gradient accumulator of a leaf; late versions of 2.x use their own smart pointers.
using GradAccumulator =
    decltype(torch::autograd::impl::try_get_grad_accumulator(std::declval<const at::Tensor&>()));

template <typename Node>
std::weak_ptr<Node> weak(const std::shared_ptr<Node>& node) {
  return node;
}
template <typename Node>
c10::weak_intrusive_ptr<Node> weak(const c10::intrusive_ptr<Node>& node) {
  return c10::weak_intrusive_ptr<Node>(node);
}

/// Sets autocast to this type for CUDA or the CPU.
inline void set_autocast(bool cuda, c10::ScalarType type, bool on) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  const c10::DeviceType device = cuda ? c10::kCUDA : c10::kCPU;
  at::autocast::set_autocast_dtype(device, type);
  at::autocast::set_autocast_enabled(device, on);
#else
  if (cuda) {
    at::autocast::set_autocast_gpu_dtype(type);
    at::autocast::set_enabled(on);
  } else {
    at::autocast::set_autocast_cpu_dtype(type);
    at::autocast::set_cpu_enabled(on);
  }
#endif
}

/// Whether libtorch has PyTorch's fused optimizers for the CPU too.
#define PARSIMONY_HAS_FUSED_STEPS \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4))

/// Sets the leaf's accumulator. If it is empty, the next use of the leaf creates a new one.
inline void set_grad_accumulator(const at::Tensor& leaf, const GradAccumulator& accumulator) {
  torch::autograd::impl::set_grad_accumulator(leaf, weak(accumulator));
}

}  // namespace compat
}  // namespace parsimony::torch_io
