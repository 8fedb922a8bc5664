// The masked original in its simplest form: zeros in the module's own tensors.
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

/// The tensors of a network: those that plans name, and all that its program reads.
struct NetworkTensors {
  FindTensor find;
  std::vector<at::Tensor> all;
};

/// The parameters and buffers of a module, which must outlive it.
NetworkTensors tensors_of(const torch::nn::Module& module);

/// Memory of their own, for a while, for tensors that a change of what a plan names would also
/// show in: other views of the memory, such as a transpose, and the elements of an expanded
/// tensor. Tensors that are the same view stay one.
class Separated {
 public:
  Separated(const Plan& plan, const NetworkTensors& tensors);
  ~Separated();
  Separated(const Separated&) = delete;
  Separated& operator=(const Separated&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> shown_;  ///< the tensor, and what it showed
};

/// The masked original in the tensors themselves, for as long as the object lives.
class Zeroed {
 public:
  Zeroed(const Plan& plan, const NetworkTensors& tensors);
  ~Zeroed();
  Zeroed(const Zeroed&) = delete;
  Zeroed& operator=(const Zeroed&) = delete;

 private:
  Separated separated_;
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;  ///< tensors with their own values
};

}  // namespace parsimony::torch_io
