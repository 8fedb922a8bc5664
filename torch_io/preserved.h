// Tensors that a run may change, put back afterwards.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

namespace parsimony::torch_io {

/// A network may keep state in its buffers; two runs shall begin with the same. What was written in
/// place while this lived is as before at its end.
class Preserved {
 public:
  template <typename Tensors>
  explicit Preserved(const Tensors& tensors) {
    for (const at::Tensor& tensor : tensors) saved_.emplace_back(tensor, tensor.detach().clone());
  }
  ~Preserved() {
    const at::NoGradGuard no_grad;
    for (const auto& [tensor, values] : saved_) tensor.detach().copy_(values);
  }
  Preserved(const Preserved&) = delete;
  Preserved& operator=(const Preserved&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;
};

}  // namespace parsimony::torch_io
