// The masked original in its simplest form: the module's own tensors with zeros.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/speedup/plan.h"

namespace parsimony::torch_io {

/// Finds a tensor by name. @throws ModelError if there is none
using FindTensor = std::function<at::Tensor(const std::string&)>;

/// The tensors of a network: those named by plans, and all that its program reads.
struct NetworkTensors {
  FindTensor find;
  std::vector<at::Tensor> all;
};

/// Returns the parameters and buffers of a module, which must outlive the result.
NetworkTensors tensors_of(const torch::nn::Module& module);

/// Temporarily gives separate memory to tensors that would also show changes of the plan's tensors:
/// other views of the memory, such as a transpose, and the elements of an expanded tensor. Tensors
/// that are the same view stay the same.
class Separated {
 public:
  Separated(const Plan& plan, const NetworkTensors& tensors);
  ~Separated();
  Separated(const Separated&) = delete;
  Separated& operator=(const Separated&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> shown_;  ///< the tensor, and its original view
};

/// Turns the tensors themselves into the masked original during its lifetime.
class Zeroed {
 public:
  Zeroed(const Plan& plan, const NetworkTensors& tensors);
  ~Zeroed();
  Zeroed(const Zeroed&) = delete;
  Zeroed& operator=(const Zeroed&) = delete;

 private:
  Separated separated_;
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;  ///< tensors with their original values
};

}  // namespace parsimony::torch_io
