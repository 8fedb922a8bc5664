// float16 where the processor has no kernels for it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

namespace parsimony::torch_io {

/// Tensors that hold float16 hold the same numbers as float32 for as long as this lives: libtorch
/// convolves and multiplies no float16 on CPUs.
class Widened {
 public:
  template <typename Tensors>
  void add(const Tensors& tensors) {
    for (at::Tensor tensor : tensors) {
      if (tensor.scalar_type() != at::kHalf || !tensor.device().is_cpu()) continue;
      halves_.emplace_back(tensor, tensor.detach());
      const at::NoGradGuard no_grad;
      tensor.set_data(tensor.to(at::kFloat));
    }
  }

  Widened() = default;
  ~Widened() {
    for (auto& [tensor, half] : halves_) tensor.set_data(half);
  }
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;

  bool any() const { return !halves_.empty(); }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> halves_;
};

}  // namespace parsimony::torch_io
