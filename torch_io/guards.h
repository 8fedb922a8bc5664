// Restores parts of a module that a run may change: its mode and its tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <utility>
#include <vector>

#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io {

/// Puts a module into evaluation mode, and restores the mode of each of its parts at the end.
class Evaluating {
 public:
  explicit Evaluating(torch::nn::Module& module) {
    module.apply(
        [this](torch::nn::Module& part) { modes_.emplace_back(&part, part.is_training()); });
    module.eval();
  }
  ~Evaluating() {
    // Top-down, since `train` is recursive.
    for (const auto& [part, training] : modes_) part->train(training);
  }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  std::vector<std::pair<torch::nn::Module*, bool>> modes_;
};

/// Reverts in-place changes of tensors at the end of its lifetime: a network may have state in its
/// buffers, and two runs must start from the same. Expanded tensors cannot be changed in place.
class Preserved {
 public:
  template <typename Tensors>
  explicit Preserved(const Tensors& tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (!shows_elements_twice(tensor)) saved_.emplace_back(tensor, tensor.detach().clone());
    }
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
